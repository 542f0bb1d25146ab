/**
 * What the address guard knows by heart: names that never leave a network, names that resolve into one, ports whose
 * protocols can be driven by an HTTP request. Data only; the rules are in `address-guard.ts`.
 */

/** Top-level and special-use names that public DNS does not serve (RFC 6761, 6762, 8375, 9476, ICANN `.internal`, common habits). */
export const INTERNAL_SUFFIXES: readonly string[] = [
	"localhost",
	"localdomain",
	"local",
	"internal",
	"intranet",
	"private",
	"corp",
	"home",
	"lan",
	"home.arpa",
	"in-addr.arpa",
	"ip6.arpa",
	"svc",
	"invalid",
	"onion",
	"alt",
	"consul",
	"docker",
	"kube",
	"cluster",
	// Metadata services under public-looking names.
	"metadata.tencentyun.com",
	"metadata.packet.net",
	"metadata.platformequinix.com",
	"metadata.azure.com",
];

/** Public by number, inside by use: Azure's host agent answers on it from every virtual machine. */
export const INSIDE_V4: readonly string[] = ["168.63.129.16"];

/**
 * Public zones whose every name, or some name, answers with an address inside a network. A Worker cannot see what DNS
 * answers, so this list is a second layer behind each tool's own hosts; it can never be complete.
 */
export const REBINDING_SUFFIXES: readonly string[] = [
	"nip.io",
	"sslip.io",
	"xip.io",
	"xip.name",
	"ip.addr.tools",
	"localtest.me",
	"lvh.me",
	"lacolhost.com",
	"vcap.me",
	"fuf.me",
	"localho.st",
	"local.gd",
	"127-0-0-1.org.uk",
	"traefik.me",
	"backname.io",
	"rbndr.us",
	"1u.ms",
	"spoofed.burpcollaborator.net",
	"localdev.me",
	"lndo.site",
	"ddev.site",
];

/** Ports of protocols that read lines of text, so that an HTTP request could be taken for commands (after the Fetch standard's blocked ports), and of stores that need no password. */
export const REFUSED_PORTS: ReadonlySet<number> = new Set([
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
	111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531,
	532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 2375, 2379, 3306, 3659, 4045,
	4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 10250, 11211, 27017,
]);
