/** Rows for tests of the index: each with a plausible default and whatever the test is about. */
import type { ApprovalIndexRow, AuditRow, EvidenceIndexRow, LedgerBatch, RunIndexRow } from "#core/ports.ts";

export const AT = "2026-11-30T10:00:00.000Z";
/** A time `n` milliseconds after AT. */
export const at = (n: number): string => new Date(Date.parse(AT) + n).toISOString();

export const run = (row: Partial<RunIndexRow> = {}): RunIndexRow => ({
	run_id: `run_${"0".repeat(32)}`,
	session_id: "sess_1",
	principal_id: "usr_1",
	trace_id: "1".repeat(32),
	status: "executing",
	goal: "compare A and B",
	planner_kind: "scripted",
	seq: 1,
	created_at: AT,
	updated_at: AT,
	...row,
});
export const approval = (row: Partial<ApprovalIndexRow> = {}): ApprovalIndexRow => ({
	approval_id: "apr_1",
	run_id: run().run_id,
	tool_id: "pay",
	domain: "finance",
	status: "pending",
	requested_by: "usr_1",
	seq: 1,
	created_at: AT,
	expires_at: at(1000),
	...row,
});
export const evidence = (row: Partial<EvidenceIndexRow> = {}): EvidenceIndexRow => ({
	evidence_id: "ev_1",
	run_id: run().run_id,
	seq: 1,
	tool_call_id: "call_1",
	tool_id: "pay",
	outcome: "success",
	input_hash: "a".repeat(64),
	hash: "b".repeat(64),
	at: AT,
	...row,
});
export const auditRow = (row: Partial<AuditRow> = {}): AuditRow => ({
	run_id: run().run_id,
	seq: 1,
	trace_id: "1".repeat(32),
	at: AT,
	session_id: "sess_1",
	principal_id: "usr_1",
	tool_id: "pay",
	action: "call.executed",
	input_params: { to: "A", amount: 1 },
	duration_ms: 12,
	permission_decision: "allow",
	security_flags: [],
	status: "success",
	...row,
});
export const batch = (tenant_id: string, parts: Partial<LedgerBatch> = {}): LedgerBatch => ({
	tenant_id,
	run: run(),
	approvals: [],
	evidence: [],
	audit: [],
	...parts,
});
