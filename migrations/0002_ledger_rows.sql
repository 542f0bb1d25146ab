-- The four indexes of the audit answered no question that the API asks.
DROP INDEX `audit_by_time`;--> statement-breakpoint
DROP INDEX `audit_by_trace`;--> statement-breakpoint
DROP INDEX `audit_by_principal`;--> statement-breakpoint
DROP INDEX `audit_by_tool`;--> statement-breakpoint
-- Without a rowid the key is the table: one written row for each record instead of two.
CREATE TABLE `new_evidence` (
	`tenant_id` text NOT NULL,
	`run_id` text NOT NULL,
	`seq` integer NOT NULL,
	`evidence_id` text NOT NULL,
	`tool_call_id` text NOT NULL,
	`tool_id` text NOT NULL,
	`outcome` text NOT NULL,
	`input_hash` text NOT NULL,
	`hash` text NOT NULL,
	`at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `run_id`, `seq`)
) WITHOUT ROWID;--> statement-breakpoint
INSERT INTO `new_evidence` (`tenant_id`, `run_id`, `seq`, `evidence_id`, `tool_call_id`, `tool_id`, `outcome`, `input_hash`, `hash`, `at`) SELECT `tenant_id`, `run_id`, `seq`, `evidence_id`, `tool_call_id`, `tool_id`, `outcome`, `input_hash`, `hash`, `at` FROM `evidence`;--> statement-breakpoint
DROP TABLE `evidence`;--> statement-breakpoint
ALTER TABLE `new_evidence` RENAME TO `evidence`;--> statement-breakpoint
CREATE TABLE `new_audit` (
	`tenant_id` text NOT NULL,
	`stream_id` text NOT NULL,
	`seq` integer NOT NULL,
	`run_id` text,
	`trace_id` text NOT NULL,
	`at` text NOT NULL,
	`session_id` text,
	`principal_id` text NOT NULL,
	`tool_id` text,
	`action` text NOT NULL,
	`input_params` text NOT NULL,
	`duration_ms` integer,
	`permission_decision` text,
	`security_flags` text NOT NULL,
	`status` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `stream_id`, `seq`)
) WITHOUT ROWID;--> statement-breakpoint
INSERT INTO `new_audit` (`tenant_id`, `stream_id`, `seq`, `run_id`, `trace_id`, `at`, `session_id`, `principal_id`, `tool_id`, `action`, `input_params`, `duration_ms`, `permission_decision`, `security_flags`, `status`) SELECT `tenant_id`, `stream_id`, `seq`, `run_id`, `trace_id`, `at`, `session_id`, `principal_id`, `tool_id`, `action`, `input_params`, `duration_ms`, `permission_decision`, `security_flags`, `status` FROM `audit`;--> statement-breakpoint
DROP TABLE `audit`;--> statement-breakpoint
ALTER TABLE `new_audit` RENAME TO `audit`;--> statement-breakpoint
CREATE INDEX `audit_flagged` ON `audit` (`tenant_id`,`at`) WHERE "audit"."security_flags" <> '[]';
