CREATE TABLE `api_keys` (
	`tenant_id` text NOT NULL,
	`key_id` text NOT NULL,
	`key_hash` text NOT NULL,
	`prefix` text NOT NULL,
	`last4` text NOT NULL,
	`principal_id` text NOT NULL,
	`created_at` text NOT NULL,
	`expires_at` text,
	`revoked_at` text,
	PRIMARY KEY(`tenant_id`, `key_id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_by_hash` ON `api_keys` (`key_hash`);--> statement-breakpoint
CREATE TABLE `approvals` (
	`tenant_id` text NOT NULL,
	`approval_id` text NOT NULL,
	`run_id` text NOT NULL,
	`tool_id` text NOT NULL,
	`domain` text NOT NULL,
	`status` text NOT NULL,
	`requested_by` text NOT NULL,
	`seq` integer NOT NULL,
	`created_at` text NOT NULL,
	`expires_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `approval_id`)
);
--> statement-breakpoint
CREATE INDEX `approvals_by_status` ON `approvals` (`tenant_id`,`status`,`created_at`,`approval_id`);--> statement-breakpoint
CREATE INDEX `approvals_by_run` ON `approvals` (`tenant_id`,`run_id`,`created_at`,`approval_id`);--> statement-breakpoint
CREATE TABLE `audit` (
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
);
--> statement-breakpoint
CREATE INDEX `audit_by_time` ON `audit` (`tenant_id`,`at`);--> statement-breakpoint
CREATE INDEX `audit_by_trace` ON `audit` (`tenant_id`,`trace_id`,`at`);--> statement-breakpoint
CREATE INDEX `audit_by_principal` ON `audit` (`tenant_id`,`principal_id`,`at`);--> statement-breakpoint
CREATE INDEX `audit_by_tool` ON `audit` (`tenant_id`,`tool_id`,`at`);--> statement-breakpoint
CREATE TABLE `channels` (
	`tenant_id` text NOT NULL,
	`channel_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`url` text,
	`to` text,
	`secret` text,
	`locale` text,
	`created_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `channel_id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `channels_by_name` ON `channels` (`tenant_id`,`name`);--> statement-breakpoint
CREATE TABLE `evidence` (
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
);
--> statement-breakpoint
CREATE TABLE `parked_rows` (
	`tenant_id` text NOT NULL,
	`run_id` text NOT NULL,
	`kind` text NOT NULL,
	`row_key` text NOT NULL,
	`reason` text NOT NULL,
	`bytes` integer NOT NULL,
	PRIMARY KEY(`tenant_id`, `run_id`, `kind`, `row_key`)
);
--> statement-breakpoint
CREATE TABLE `principals` (
	`tenant_id` text NOT NULL,
	`principal_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`email` text,
	`department` text,
	`created_at` text NOT NULL,
	`disabled_at` text,
	PRIMARY KEY(`tenant_id`, `principal_id`)
);
--> statement-breakpoint
CREATE TABLE `role_bindings` (
	`tenant_id` text NOT NULL,
	`principal_id` text NOT NULL,
	`role` text NOT NULL,
	`created_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `principal_id`, `role`)
);
--> statement-breakpoint
CREATE TABLE `roles` (
	`tenant_id` text NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`updated_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `name`)
);
--> statement-breakpoint
CREATE TABLE `runs` (
	`tenant_id` text NOT NULL,
	`run_id` text NOT NULL,
	`session_id` text NOT NULL,
	`principal_id` text NOT NULL,
	`trace_id` text NOT NULL,
	`status` text NOT NULL,
	`goal` text NOT NULL,
	`planner_kind` text NOT NULL,
	`seq` integer NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `run_id`)
);
--> statement-breakpoint
CREATE INDEX `runs_by_time` ON `runs` (`tenant_id`,`created_at`,`run_id`);--> statement-breakpoint
CREATE INDEX `runs_by_status` ON `runs` (`tenant_id`,`status`,`created_at`,`run_id`);--> statement-breakpoint
CREATE INDEX `runs_by_principal` ON `runs` (`tenant_id`,`principal_id`,`created_at`,`run_id`);--> statement-breakpoint
CREATE TABLE `secrets` (
	`tenant_id` text NOT NULL,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`ciphertext` text,
	`allowed_hosts` text NOT NULL,
	`allowed_tools` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `name`)
);
--> statement-breakpoint
CREATE TABLE `sessions` (
	`tenant_id` text NOT NULL,
	`session_id` text NOT NULL,
	`principal_id` text NOT NULL,
	`created_at` text NOT NULL,
	PRIMARY KEY(`tenant_id`, `session_id`)
);
--> statement-breakpoint
CREATE TABLE `tenants` (
	`tenant_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`created_at` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `tool_versions` (
	`tenant_id` text NOT NULL,
	`tool_id` text NOT NULL,
	`version` text NOT NULL,
	`version_sort` text NOT NULL,
	`definition_hash` text NOT NULL,
	`descriptor` text NOT NULL,
	`status` text NOT NULL,
	`is_latest` integer NOT NULL,
	`created_at` text NOT NULL,
	`offline_since` text,
	PRIMARY KEY(`tenant_id`, `tool_id`, `version`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tool_versions_latest` ON `tool_versions` (`tenant_id`,`tool_id`) WHERE is_latest = 1;