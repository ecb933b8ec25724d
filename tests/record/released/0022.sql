BEGIN TRANSACTION;
CREATE TABLE account (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created DATETIME NOT NULL, 
	disabled DATETIME, issuer VARCHAR(255), subject VARCHAR(255), 
	CONSTRAINT uq_account_name UNIQUE (name)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0022');
CREATE TABLE attempt (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid VARCHAR(36) NOT NULL, 
	training_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	fence INTEGER NOT NULL, 
	slot JSON NOT NULL, 
	resumed_from VARCHAR, 
	holder VARCHAR, 
	host VARCHAR, 
	seen INTEGER NOT NULL, 
	checkpoint VARCHAR, 
	log_bytes INTEGER NOT NULL, 
	started DATETIME NOT NULL, 
	ended DATETIME, 
	reason TEXT, cause VARCHAR(16), owner_id INTEGER, project_id INTEGER, cpus FLOAT, gpus FLOAT, begun DATETIME, 
	CONSTRAINT fk_attempt_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_attempt_training_id_number UNIQUE (training_id, number), 
	CONSTRAINT uq_attempt_uid UNIQUE (uid)
);
INSERT INTO "attempt" VALUES(1,'93eac7a7-904f-421f-9b08-a002ed1cc227',1,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-22 18:29:48.034706','2026-11-22 18:29:48.208967',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(2,'0695a861-6e7d-4ebd-8cb0-ef7279af7598',2,1,'failed',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,NULL,NULL,0,NULL,0,'2026-11-22 18:29:48.386350','2026-11-22 18:29:48.388634','ValueError: no such class','recipe',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(3,'625d3e13-d565-4ae5-af67-9af24b79e04b',3,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-22 18:29:48.635989','2026-11-22 18:29:48.761414',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(4,'bb176ebb-ed72-41f5-b815-b2b13ec14f9d',4,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-22 18:29:48.816619','2026-11-22 18:29:48.936862',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE audit (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DATETIME NOT NULL, 
	who VARCHAR NOT NULL, 
	account_id INTEGER, 
	token_id INTEGER, 
	what VARCHAR(32) NOT NULL, 
	target VARCHAR NOT NULL, 
	detail TEXT NOT NULL, 
	address VARCHAR NOT NULL, 
	request VARCHAR(32) NOT NULL
);
CREATE TABLE candidate (
	sweep_id INTEGER NOT NULL, 
	cell INTEGER NOT NULL, 
	candidate INTEGER NOT NULL, 
	labels JSON NOT NULL, suggested JSON, asked INTEGER, told INTEGER, score FLOAT, pruned INTEGER, 
	CONSTRAINT pk_candidate PRIMARY KEY (sweep_id, cell, candidate), 
	CONSTRAINT fk_candidate_sweep_id_cell FOREIGN KEY(sweep_id, cell) REFERENCES cell (sweep_id, cell)
);
INSERT INTO "candidate" VALUES(1,0,0,'{"loss.margin": "0.2"}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(1,1,0,'{"loss.margin": "0.2"}',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE cell (
	sweep_id INTEGER NOT NULL, 
	cell INTEGER NOT NULL, 
	labels JSON NOT NULL, 
	summary JSON, 
	settled DATETIME, 
	mlflow_run VARCHAR, open BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_cell PRIMARY KEY (sweep_id, cell), 
	CONSTRAINT fk_cell_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id)
);
INSERT INTO "cell" VALUES(1,0,'{"loss": "triplet"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(1,1,'{"loss": "semihard"}',NULL,NULL,NULL,0);
CREATE TABLE change (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind VARCHAR(8) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	state VARCHAR(16)
);
INSERT INTO "change" VALUES(1,'sweep',1,1,'queued');
INSERT INTO "change" VALUES(2,'sweep',1,1,'running');
INSERT INTO "change" VALUES(3,'trial',1,1,NULL);
INSERT INTO "change" VALUES(4,'progress',1,1,NULL);
INSERT INTO "change" VALUES(5,'progress',1,1,NULL);
INSERT INTO "change" VALUES(6,'trial',1,1,NULL);
INSERT INTO "change" VALUES(7,'trial',1,2,NULL);
INSERT INTO "change" VALUES(8,'trial',1,2,NULL);
INSERT INTO "change" VALUES(9,'trial',1,3,NULL);
INSERT INTO "change" VALUES(10,'progress',1,3,NULL);
INSERT INTO "change" VALUES(11,'progress',1,3,NULL);
INSERT INTO "change" VALUES(12,'trial',1,3,NULL);
INSERT INTO "change" VALUES(13,'trial',1,4,NULL);
INSERT INTO "change" VALUES(14,'progress',1,4,NULL);
INSERT INTO "change" VALUES(15,'progress',1,4,NULL);
INSERT INTO "change" VALUES(16,'trial',1,4,NULL);
INSERT INTO "change" VALUES(17,'request',1,1,NULL);
CREATE TABLE collected (
	training_id INTEGER NOT NULL, 
	request INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	reason TEXT NOT NULL, 
	files INTEGER, 
	bytes INTEGER, 
	removed DATETIME, 
	CONSTRAINT pk_collected PRIMARY KEY (training_id), 
	CONSTRAINT fk_collected_training_id FOREIGN KEY(training_id) REFERENCES training (id)
);
CREATE TABLE delivery (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid VARCHAR(36) NOT NULL, 
	event VARCHAR(16) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	said JSON NOT NULL, 
	created FLOAT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	tries INTEGER NOT NULL, 
	next_try FLOAT NOT NULL, 
	error TEXT, 
	CONSTRAINT uq_delivery_uid UNIQUE (uid)
);
INSERT INTO "delivery" VALUES(1,'5f0c3c1e-7f0a-4a3e-9b7d-1d5b2c9a8e10','sweep.failed',1,'{"sweep": 1, "name": "released", "state": "failed", "trials": 4, "counts": {"waiting": 0, "running": 0, "finished": 3, "failed": 1, "cancelled": 0, "pruned": 0}}',1795370989.5,'waiting',1,1795370999.5,'answered 500');
CREATE TABLE finding (
	node VARCHAR NOT NULL, 
	need VARCHAR(16) NOT NULL, 
	host VARCHAR NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	said TEXT NOT NULL, 
	looked DATETIME NOT NULL, facts JSON, 
	CONSTRAINT pk_finding PRIMARY KEY (node, need), 
	CONSTRAINT fk_finding_need FOREIGN KEY(need) REFERENCES need ("key")
);
CREATE TABLE installation (
	id INTEGER NOT NULL, 
	uid VARCHAR(36) NOT NULL, 
	CONSTRAINT pk_installation PRIMARY KEY (id)
);
CREATE TABLE lease (
	name VARCHAR(32) NOT NULL, 
	holder VARCHAR NOT NULL, 
	fence INTEGER NOT NULL, 
	until FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	CONSTRAINT pk_lease PRIMARY KEY (name)
);
INSERT INTO "lease" VALUES('conductor','conductor-1',1,0.0,600.0);
CREATE TABLE log (
	attempt_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	start INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_log PRIMARY KEY (attempt_id, seq), 
	CONSTRAINT fk_log_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
INSERT INTO "log" VALUES(1,1,0,'step 10
');
INSERT INTO "log" VALUES(3,1,0,'step 10
');
INSERT INTO "log" VALUES(4,1,0,'step 10
');
CREATE TABLE membership (
	account_id INTEGER NOT NULL, 
	project_id INTEGER NOT NULL, 
	steers BOOLEAN NOT NULL, 
	CONSTRAINT pk_membership PRIMARY KEY (account_id, project_id), 
	CONSTRAINT fk_membership_account_id FOREIGN KEY(account_id) REFERENCES account (id), 
	CONSTRAINT fk_membership_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);
CREATE TABLE metric (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	attempt_id INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	step INTEGER NOT NULL, 
	value FLOAT, 
	at DATETIME NOT NULL, 
	CONSTRAINT fk_metric_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempt (id), 
	CONSTRAINT uq_metric_attempt_id_key_step UNIQUE (attempt_id, "key", step)
);
INSERT INTO "metric" VALUES(1,1,'train/loss',10,1.0,'2026-11-22 18:29:48.146847');
INSERT INTO "metric" VALUES(2,1,'validation/map@r',20,0.5,'2026-11-22 18:29:48.207026');
INSERT INTO "metric" VALUES(3,3,'train/loss',10,1.0,'2026-11-22 18:29:48.727364');
INSERT INTO "metric" VALUES(4,3,'validation/map@r',20,0.52,'2026-11-22 18:29:48.728951');
INSERT INTO "metric" VALUES(5,4,'train/loss',10,1.0,'2026-11-22 18:29:48.872599');
INSERT INTO "metric" VALUES(6,4,'validation/map@r',20,0.53,'2026-11-22 18:29:48.884113');
CREATE TABLE need (
	"key" VARCHAR(16) NOT NULL, 
	reads JSON NOT NULL, 
	CONSTRAINT pk_need PRIMARY KEY ("key")
);
CREATE TABLE node (
	uid VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	resources JSON NOT NULL, 
	alive BOOLEAN NOT NULL, 
	seen DATETIME NOT NULL, 
	CONSTRAINT pk_node PRIMARY KEY (uid)
);
CREATE TABLE note (
	kind VARCHAR(8) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	actor VARCHAR, 
	changed DATETIME NOT NULL, 
	CONSTRAINT pk_note PRIMARY KEY (kind, sweep_id, entity), 
	CONSTRAINT fk_note_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id)
);
CREATE TABLE outbox (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind VARCHAR(8) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	next_try FLOAT NOT NULL, 
	error TEXT, marked FLOAT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_outbox_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT uq_outbox_kind_sweep_id_entity UNIQUE (kind, sweep_id, entity)
);
INSERT INTO "outbox" VALUES(1,'sweep',1,1,1,0,0.0,NULL,1.79537218790299606327e+09);
INSERT INTO "outbox" VALUES(2,'trial',1,1,4,0,0.0,NULL,1.79537218813799762722e+09);
INSERT INTO "outbox" VALUES(6,'trial',1,2,1,0,0.0,NULL,1.79537218843898177143e+09);
INSERT INTO "outbox" VALUES(7,'trial',1,3,4,0,0.0,NULL,1.79537218872600507738e+09);
INSERT INTO "outbox" VALUES(11,'trial',1,4,4,0,0.0,NULL,1.79537218887100505828e+09);
CREATE TABLE past_attempt (
	id INTEGER NOT NULL, 
	owner_id INTEGER, 
	project_id INTEGER, 
	cpus FLOAT NOT NULL, 
	gpus FLOAT NOT NULL, 
	begun DATETIME NOT NULL, 
	ended DATETIME NOT NULL, 
	CONSTRAINT pk_past_attempt PRIMARY KEY (id)
);
CREATE TABLE project (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(64) NOT NULL, 
	open BOOLEAN NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT uq_project_name UNIQUE (name)
);
INSERT INTO "project" VALUES(1,'main',1,'2026-11-23 05:07:28.869240');
CREATE TABLE quota (
	id INTEGER NOT NULL, 
	account_id INTEGER, 
	project_id INTEGER, 
	slots INTEGER, 
	gpu_hours FLOAT, 
	cpu_hours FLOAT, 
	days INTEGER, 
	CONSTRAINT pk_quota PRIMARY KEY (id), 
	CONSTRAINT fk_quota_account_id FOREIGN KEY(account_id) REFERENCES account (id), 
	CONSTRAINT fk_quota_project_id FOREIGN KEY(project_id) REFERENCES project (id), 
	CONSTRAINT uq_quota_account_id UNIQUE (account_id), 
	CONSTRAINT uq_quota_project_id UNIQUE (project_id)
);
CREATE TABLE "request" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind VARCHAR(16) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	actor VARCHAR, 
	created DATETIME NOT NULL, 
	applied DATETIME, 
	outcome TEXT, 
	arguments JSON
, project_id INTEGER);
INSERT INTO "request" VALUES(1,'retry',1,NULL,'ann','2026-11-22 18:29:49.030233',NULL,NULL,NULL,NULL);
CREATE TABLE resolution (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	sweep_id INTEGER NOT NULL, 
	request INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	budget JSON NOT NULL, 
	actor VARCHAR, 
	begun DATETIME NOT NULL, 
	position INTEGER, 
	report JSON NOT NULL, 
	ended DATETIME, 
	outcome TEXT, 
	CONSTRAINT fk_resolution_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT uq_resolution_request UNIQUE (request)
);
CREATE TABLE slot (
	name VARCHAR NOT NULL, 
	node VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	resources JSON NOT NULL, 
	attempt VARCHAR(36), 
	usage JSON, 
	lag FLOAT, 
	seen DATETIME NOT NULL, 
	CONSTRAINT pk_slot PRIMARY KEY (name)
);
CREATE TABLE sweep (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid VARCHAR(36) NOT NULL, 
	name VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	spec JSON NOT NULL, 
	total INTEGER NOT NULL, 
	actor VARCHAR, 
	idempotency_key VARCHAR, 
	body_hash VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	slot JSON, 
	started DATETIME, 
	ended DATETIME, 
	error TEXT, 
	mlflow_experiment VARCHAR, 
	mlflow_run VARCHAR, priority INTEGER DEFAULT '0' NOT NULL, notice TEXT, project_id INTEGER DEFAULT '1' NOT NULL, owner_id INTEGER, content JSON, 
	CONSTRAINT uq_sweep_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT uq_sweep_uid UNIQUE (uid)
);
INSERT INTO "sweep" VALUES(1,'30b9ea64-0e05-4ac6-a119-90d0ddd6ec28','released','name: released
','{"name": "released", "tables": {"main": {"rows": ["loss"]}}}',4,'ann',NULL,'hash','2026-11-22 18:29:47.727821','running','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 18:29:47.784721',NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
CREATE TABLE sweep_need (
	sweep_id INTEGER NOT NULL, 
	need VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_sweep_need PRIMARY KEY (sweep_id, need), 
	CONSTRAINT fk_sweep_need_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_need_need FOREIGN KEY(need) REFERENCES need ("key")
);
CREATE TABLE tag (
	kind VARCHAR(8) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	tag VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_tag PRIMARY KEY (kind, sweep_id, entity, tag), 
	CONSTRAINT fk_tag_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id)
);
CREATE TABLE token (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	scope VARCHAR(16) NOT NULL, 
	created DATETIME NOT NULL, 
	expires DATETIME, 
	revoked DATETIME, browser BOOLEAN, 
	CONSTRAINT fk_token_account_id FOREIGN KEY(account_id) REFERENCES account (id), 
	CONSTRAINT uq_token_hash UNIQUE (hash)
);
CREATE TABLE training (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid VARCHAR(36) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	generation INTEGER NOT NULL, 
	recipe JSON NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	step INTEGER NOT NULL, 
	total_steps INTEGER NOT NULL, 
	log_length INTEGER NOT NULL, 
	diverged BOOLEAN NOT NULL, 
	metrics JSON, 
	score FLOAT, 
	best_step INTEGER, 
	seconds FLOAT, 
	result JSON, 
	error TEXT, 
	trace TEXT, 
	started DATETIME, 
	ended DATETIME, need VARCHAR(16), stamp TEXT DEFAULT '' NOT NULL, heir INTEGER, base VARCHAR(64) DEFAULT '' NOT NULL, source INTEGER, shape VARCHAR(32), 
	CONSTRAINT uq_training_fingerprint_generation UNIQUE (fingerprint, generation), 
	CONSTRAINT uq_training_uid UNIQUE (uid)
);
INSERT INTO "training" VALUES(1,'94c62884-705d-4158-98cf-4161924c8566','23fa95c93af3615d9aba9e3c3e48d2adc32d26b2d9e6366c197ab675f2bce15f',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "triplet", "margin": 0.2}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": null, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.5, "best/test/map@r": 0.4, "best/test/recall@1": null}',0.5,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-22 18:29:48.034706','2026-11-22 18:29:48.235259',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"loss":1}}',NULL,'',NULL,'8cb1818b93b3060fc42a29a7af78cae2');
INSERT INTO "training" VALUES(2,'f1414745-34bd-4ca3-9725-6d03360429d8','45f26ea2c81a6d6bd1b9d3cdc42cb9b73e36bfd184402a6f03b318488a03cfb6',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "triplet", "margin": 0.2}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": null, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','failed',0,100,0,0,NULL,NULL,NULL,NULL,NULL,'ValueError: no such class','Traceback ...','2026-11-22 18:29:48.386350','2026-11-22 18:29:48.433265',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"loss":1}}',NULL,'',NULL,NULL);
INSERT INTO "training" VALUES(3,'0e7480b2-78c9-435a-bace-e53024c54cf7','8ba80224be6fc03e50729c430b3312879e2ca85d70fe3bf402c6678824d58b64',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "semihard", "margin": 0.2}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": null, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.52, "best/test/map@r": 0.42000000000000004, "best/test/recall@1": null}',0.52,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-22 18:29:48.635989','2026-11-22 18:29:48.762116',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"semihard","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"loss":1}}',NULL,'',NULL,'8cb1818b93b3060fc42a29a7af78cae2');
INSERT INTO "training" VALUES(4,'442d344b-5a49-477f-9c85-3b06edbf72ba','3681bbc8cc9bbe4516f33999af24182e5955d259274a98b0650ab46340dde15b',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "semihard", "margin": 0.2}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": null, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.53, "best/test/map@r": 0.43000000000000005, "best/test/recall@1": null}',0.53,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-22 18:29:48.816619','2026-11-22 18:29:48.942974',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"semihard","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"loss":1}}',NULL,'',NULL,'8cb1818b93b3060fc42a29a7af78cae2');
CREATE TABLE trial (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid VARCHAR(36) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	cell INTEGER NOT NULL, 
	candidate INTEGER NOT NULL, 
	repeat INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	repeat_labels JSON NOT NULL, 
	training_id INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reused BOOLEAN NOT NULL, 
	diverged BOOLEAN NOT NULL, 
	started DATETIME, 
	ended DATETIME, 
	mlflow_run VARCHAR, 
	mlflow_point INTEGER NOT NULL, slot JSON, reason TEXT, mlflow_left VARCHAR, evaluation_id INTEGER, score FLOAT, seconds FLOAT, label_0 VARCHAR, label_1 VARCHAR, label_2 VARCHAR, label_3 VARCHAR, label_4 VARCHAR, label_5 VARCHAR, label_6 VARCHAR, label_7 VARCHAR, label_8 VARCHAR, label_9 VARCHAR, label_10 VARCHAR, label_11 VARCHAR, label_12 VARCHAR, label_13 VARCHAR, label_14 VARCHAR, label_15 VARCHAR, number_0 FLOAT, number_1 FLOAT, number_2 FLOAT, number_3 FLOAT, number_4 FLOAT, number_5 FLOAT, number_6 FLOAT, number_7 FLOAT, number_8 FLOAT, number_9 FLOAT, number_10 FLOAT, number_11 FLOAT, number_12 FLOAT, number_13 FLOAT, number_14 FLOAT, number_15 FLOAT, number_16 FLOAT, number_17 FLOAT, number_18 FLOAT, number_19 FLOAT, number_20 FLOAT, number_21 FLOAT, number_22 FLOAT, number_23 FLOAT, number_24 FLOAT, number_25 FLOAT, number_26 FLOAT, number_27 FLOAT, number_28 FLOAT, number_29 FLOAT, number_30 FLOAT, number_31 FLOAT, number_32 FLOAT, number_33 FLOAT, number_34 FLOAT, number_35 FLOAT, number_36 FLOAT, number_37 FLOAT, number_38 FLOAT, number_39 FLOAT, number_40 FLOAT, number_41 FLOAT, number_42 FLOAT, number_43 FLOAT, number_44 FLOAT, number_45 FLOAT, number_46 FLOAT, number_47 FLOAT, number_48 FLOAT, number_49 FLOAT, number_50 FLOAT, number_51 FLOAT, number_52 FLOAT, number_53 FLOAT, number_54 FLOAT, number_55 FLOAT, number_56 FLOAT, number_57 FLOAT, number_58 FLOAT, number_59 FLOAT, number_60 FLOAT, number_61 FLOAT, number_62 FLOAT, number_63 FLOAT, number_64 FLOAT, number_65 FLOAT, number_66 FLOAT, number_67 FLOAT, number_68 FLOAT, number_69 FLOAT, number_70 FLOAT, number_71 FLOAT, number_72 FLOAT, number_73 FLOAT, number_74 FLOAT, number_75 FLOAT, number_76 FLOAT, number_77 FLOAT, number_78 FLOAT, number_79 FLOAT, number_80 FLOAT, number_81 FLOAT, number_82 FLOAT, number_83 FLOAT, number_84 FLOAT, number_85 FLOAT, number_86 FLOAT, number_87 FLOAT, number_88 FLOAT, number_89 FLOAT, number_90 FLOAT, number_91 FLOAT, number_92 FLOAT, number_93 FLOAT, number_94 FLOAT, number_95 FLOAT, 
	CONSTRAINT fk_trial_sweep_id_cell_candidate FOREIGN KEY(sweep_id, cell, candidate) REFERENCES candidate (sweep_id, cell, candidate), 
	CONSTRAINT fk_trial_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_trial_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_trial_sweep_id_cell_candidate_repeat UNIQUE (sweep_id, cell, candidate, repeat), 
	CONSTRAINT uq_trial_sweep_id_position UNIQUE (sweep_id, position), 
	CONSTRAINT uq_trial_uid UNIQUE (uid)
);
INSERT INTO "trial" VALUES(1,'267757c8-4305-5e83-83ba-1eec42404874',1,0,0,0,0,'{"seed": "0"}',1,'finished',0,0,'2026-11-22 18:29:48.034706','2026-11-22 18:29:48.235259',NULL,0,NULL,NULL,NULL,NULL,0.5,8.0,'triplet','0.2','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.2,0.0,0.4,NULL,0.5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(2,'fa170a92-8d20-5049-a2d5-59b158f74c25',1,0,0,1,1,'{"seed": "1"}',2,'failed',0,0,'2026-11-22 18:29:48.386350','2026-11-22 18:29:48.433265',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'triplet','0.2','1',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.2,1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(3,'23231b4a-8e64-50e2-ab5f-c7fc2cccd8c3',1,1,0,0,2,'{"seed": "0"}',3,'finished',0,0,'2026-11-22 18:29:48.635989','2026-11-22 18:29:48.762116',NULL,0,NULL,NULL,NULL,NULL,0.52,8.0,'semihard','0.2','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.2,0.0,4.20000000000000039968e-01,NULL,0.52,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(4,'aeaf2f54-4235-5495-8ad7-25230bcf008b',1,1,0,1,3,'{"seed": "1"}',4,'finished',0,0,'2026-11-22 18:29:48.816619','2026-11-22 18:29:48.942974',NULL,0,NULL,NULL,NULL,NULL,0.53,8.0,'semihard','0.2','1',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.2,1.0,4.30000000000000048849e-01,NULL,0.53,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE trial_column (
	sweep_id INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	role VARCHAR(8) NOT NULL, 
	label INTEGER, 
	number INTEGER, 
	CONSTRAINT pk_trial_column PRIMARY KEY (sweep_id, "key"), 
	CONSTRAINT fk_trial_column_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id)
);
INSERT INTO "trial_column" VALUES(1,'loss','compare',0,NULL);
INSERT INTO "trial_column" VALUES(1,'loss.margin','tune',1,0);
INSERT INTO "trial_column" VALUES(1,'seed','repeat',2,1);
INSERT INTO "trial_column" VALUES(1,'best/test/map@r','metric',NULL,2);
INSERT INTO "trial_column" VALUES(1,'best/test/recall@1','metric',NULL,3);
INSERT INTO "trial_column" VALUES(1,'best/validation/map@r','metric',NULL,4);
CREATE INDEX ix_sweep_started_state ON sweep (started, state);
CREATE INDEX ix_sweep_state ON sweep (state);
CREATE INDEX ix_cell_settled_sweep_id_cell ON cell (settled, sweep_id, cell);
CREATE INDEX ix_outbox_next_try_id ON outbox (next_try, id);
CREATE INDEX ix_trial_cell_state ON trial (sweep_id, cell, state);
CREATE INDEX ix_trial_counts ON trial (sweep_id, state, reused, diverged);
CREATE INDEX ix_trial_sweep_id_state_position ON trial (sweep_id, state, position);
CREATE INDEX ix_trial_training_id ON trial (training_id);
CREATE INDEX ix_cell_open_sweep_id_cell ON cell (open, sweep_id, cell);
CREATE INDEX ix_request_applied ON request (applied);
CREATE INDEX ix_request_sweep_id_id ON request (sweep_id, id);
CREATE INDEX ix_training_state_stamp ON training (state, stamp);
CREATE INDEX ix_training_heir ON training (heir);
CREATE INDEX ix_training_base ON training (base);
CREATE INDEX ix_training_source ON training (source);
CREATE INDEX ix_trial_evaluation_id ON trial (evaluation_id);
CREATE INDEX ix_trial_sweep_id_evaluation_id ON trial (sweep_id, evaluation_id);
CREATE INDEX ix_attempt_state_cause ON attempt (state, cause);
CREATE INDEX ix_collected_request ON collected (request);
CREATE INDEX ix_trial_column_key ON trial_column ("key");
CREATE INDEX ix_note_sweep_id ON note (sweep_id);
CREATE INDEX ix_tag_tag ON tag (tag);
CREATE INDEX ix_tag_sweep_id ON tag (sweep_id);
CREATE INDEX ix_delivery_state_next_try_id ON delivery (state, next_try, id);
CREATE INDEX ix_delivery_sweep_id_event_created ON delivery (sweep_id, event, created);
CREATE INDEX ix_resolution_sweep_id ON resolution (sweep_id);
CREATE INDEX ix_resolution_ended ON resolution (ended);
CREATE INDEX ix_membership_project_id ON membership (project_id);
CREATE INDEX ix_token_account_id ON token (account_id);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is only appended to'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is only appended to'); END;
CREATE INDEX ix_past_attempt_owner_id ON past_attempt (owner_id);
CREATE INDEX ix_past_attempt_project_id ON past_attempt (project_id);
CREATE UNIQUE INDEX ix_account_issuer_subject ON account (issuer, subject);
CREATE INDEX ix_training_shape_id ON training (shape, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('request',1);
INSERT INTO "sqlite_sequence" VALUES('sweep',1);
INSERT INTO "sqlite_sequence" VALUES('change',17);
INSERT INTO "sqlite_sequence" VALUES('training',4);
INSERT INTO "sqlite_sequence" VALUES('trial',4);
INSERT INTO "sqlite_sequence" VALUES('outbox',14);
INSERT INTO "sqlite_sequence" VALUES('attempt',4);
INSERT INTO "sqlite_sequence" VALUES('metric',6);
INSERT INTO "sqlite_sequence" VALUES('delivery',1);
INSERT INTO "sqlite_sequence" VALUES('project',1);
COMMIT;
