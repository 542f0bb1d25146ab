/**
 * How a value is masked once it is known to be sensitive (E3): a secret whole, an identifier to its first 3 and last 4
 * characters when it has 11 or more, whole below that. Masking a masked value changes nothing. Called by the mask files.
 */
export const MASKED = "***";

const SIGNIFICANT = /[\p{L}\p{N}*]/u;
/** E3. */
const PARTIAL_MIN = 11;
const HEAD = 3;
const TAIL = 4;

/** Separators stay (`138-****-5678`), so that what it was can still be recognized; they do not count as characters. */
export function maskIdentifier(text: string): string {
	const points = [...text];
	const total = points.filter((point) => SIGNIFICANT.test(point)).length;
	if (total < PARTIAL_MIN) return MASKED;
	let seen = 0;
	return points
		.map((point) => {
			if (!SIGNIFICANT.test(point)) return point;
			seen += 1;
			return seen <= HEAD || seen > total - TAIL ? point : "*";
		})
		.join("");
}
