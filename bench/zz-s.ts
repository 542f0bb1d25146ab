import { measureChecks } from "./checks.ts";
import { measureStages } from "./stages.ts";

for (let n = 0; n < 4; n++) {
	const s = measureStages();
	console.log(s.p50_us.toFixed(1), s.p95_us.toFixed(1), s.mean_us.toFixed(1), measureChecks().p50_us.toFixed(1));
}
