BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0011');
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
	reason TEXT, cause VARCHAR(16), 
	CONSTRAINT fk_attempt_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_attempt_training_id_number UNIQUE (training_id, number), 
	CONSTRAINT uq_attempt_uid UNIQUE (uid)
);
INSERT INTO "attempt" VALUES(1,'f3e60629-21c3-4609-be11-69b07d6172e3',1,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-20 23:28:49.488685','2026-11-20 23:28:49.494621',NULL,NULL);
INSERT INTO "attempt" VALUES(2,'3d3a7308-4756-4e5b-b3ae-270584b68660',2,1,'failed',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null}',NULL,NULL,NULL,0,NULL,0,'2026-11-20 23:28:49.496791','2026-11-20 23:28:49.497606','ValueError: no such class',NULL);
INSERT INTO "attempt" VALUES(3,'582446ce-4431-47e0-87a4-501c09d5943e',3,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-20 23:28:49.499336','2026-11-20 23:28:49.502086',NULL,NULL);
INSERT INTO "attempt" VALUES(4,'64b8d36a-8c77-45dd-af79-497e9c2d8489',4,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null}',NULL,'slot-0','host-a',2,NULL,8,'2026-11-20 23:28:49.503321','2026-11-20 23:28:49.505947',NULL,NULL);
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
CREATE TABLE finding (
	node VARCHAR NOT NULL, 
	need VARCHAR(16) NOT NULL, 
	host VARCHAR NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	said TEXT NOT NULL, 
	looked DATETIME NOT NULL, 
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
INSERT INTO "metric" VALUES(1,1,'train/loss',10,1.0,'2026-11-20 23:28:49.492030');
INSERT INTO "metric" VALUES(2,1,'validation/map@r',20,0.5,'2026-11-20 23:28:49.493803');
INSERT INTO "metric" VALUES(3,3,'train/loss',10,1.0,'2026-11-20 23:28:49.500647');
INSERT INTO "metric" VALUES(4,3,'validation/map@r',20,0.5,'2026-11-20 23:28:49.501458');
INSERT INTO "metric" VALUES(5,4,'train/loss',10,1.0,'2026-11-20 23:28:49.504554');
INSERT INTO "metric" VALUES(6,4,'validation/map@r',20,0.51,'2026-11-20 23:28:49.505329');
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
INSERT INTO "outbox" VALUES(1,'sweep',1,1,2,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(2,'trial',1,1,4,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(6,'trial',1,2,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(7,'trial',1,3,4,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(11,'trial',1,4,4,0,0.0,NULL,0.0);
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
);
INSERT INTO "request" VALUES(1,'retry',1,NULL,'ann','2026-11-20 23:28:49.507097',NULL,NULL,NULL);
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
INSERT INTO "slot" VALUES('slot-0','node-0','host-a','{"CPU": 1.0}',NULL,NULL,NULL,'2026-11-20 23:28:49.494621');
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
	mlflow_run VARCHAR, priority INTEGER DEFAULT '0' NOT NULL, notice TEXT, 
	CONSTRAINT uq_sweep_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT uq_sweep_uid UNIQUE (uid)
);
INSERT INTO "sweep" VALUES(1,'9be06bc4-d9e9-4263-a30c-c79263fe2762','released','name: released
','{"name": "released", "tables": {"main": {"rows": ["loss"]}}}',4,'ann',NULL,'hash','2026-11-20 23:28:49.482168','failed','{"cpus": 1.0, "gpus": "auto", "memory_gb": null}','2026-11-20 23:28:49.483315','2026-11-20 23:28:49.507958',NULL,NULL,NULL,0,NULL);
CREATE TABLE sweep_need (
	sweep_id INTEGER NOT NULL, 
	need VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_sweep_need PRIMARY KEY (sweep_id, need), 
	CONSTRAINT fk_sweep_need_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_need_need FOREIGN KEY(need) REFERENCES need ("key")
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
	ended DATETIME, need VARCHAR(16), stamp TEXT DEFAULT '' NOT NULL, heir INTEGER, base VARCHAR(64) DEFAULT '' NOT NULL, source INTEGER, 
	CONSTRAINT uq_training_fingerprint_generation UNIQUE (fingerprint, generation), 
	CONSTRAINT uq_training_uid UNIQUE (uid)
);
INSERT INTO "training" VALUES(1,'672ef869-719a-47cb-9e34-ee9340e4530c','dc7077688ad534eac9e84df9eeb89255a9d617ffe3d6e250c7bbb65540479533',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "triplet", "margin": 0.2}, "regularizer": {"name": "none"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "evaluate_every": 10, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.5, "best/test/map@r": 0.4, "best/test/recall@1": null}',0.5,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-20 23:28:49.488685','2026-11-20 23:28:49.495159',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":null,"head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":null,"versions":{"loss":1}}',NULL,'dc7077688ad534eac9e84df9eeb89255a9d617ffe3d6e250c7bbb65540479533',NULL);
INSERT INTO "training" VALUES(2,'3a6e2007-096b-40cf-849e-6494c8e5048f','c8810ed0e7f061fbac71c782dec82f5f6519c5116fc33f4cd46e0a2b2a85731c',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "triplet", "margin": 0.2}, "regularizer": {"name": "none"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "evaluate_every": 10, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','failed',0,100,0,0,NULL,NULL,NULL,NULL,NULL,'ValueError: no such class','Traceback ...','2026-11-20 23:28:49.496791','2026-11-20 23:28:49.497959',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":null,"head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":null,"versions":{"loss":1}}',NULL,'c8810ed0e7f061fbac71c782dec82f5f6519c5116fc33f4cd46e0a2b2a85731c',NULL);
INSERT INTO "training" VALUES(3,'d0cd7f66-1085-4930-8855-b26ef7012540','841e6525b47a3ea9061319f35a1b3a669cad36122da4873be26e9b56d876f3e6',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "semihard", "margin": 0.2}, "regularizer": {"name": "none"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "evaluate_every": 10, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.5, "best/test/map@r": 0.4, "best/test/recall@1": null}',0.5,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-20 23:28:49.499336','2026-11-20 23:28:49.502243',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":null,"head":"fc","loss":"semihard","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":null,"versions":{"loss":1}}',NULL,'841e6525b47a3ea9061319f35a1b3a669cad36122da4873be26e9b56d876f3e6',NULL);
INSERT INTO "training" VALUES(4,'51a45721-fbfe-4918-a9dd-fbe847ce8d14','cd196f3ef5a1111c451f9999dfff1f4bf90acf5fccb3e68a447de6fe4c238368',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "backbone": {"name": "small_cnn", "width": 8}, "head": {"name": "fc"}, "embedding": 64, "loss": {"name": "semihard", "margin": 0.2}, "regularizer": {"name": "none"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "iterations": 100, "evaluate_every": 10, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"loss": 1}, "manifest": null, "weights": null}}','finished',100,100,8,0,'{"best/validation/map@r": 0.51, "best/test/map@r": 0.41000000000000003, "best/test/recall@1": null}',0.51,20,8.0,'{"provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}}, "artifacts": ["best.pt"], "curves": {"train/loss": [[10, 1.0], [20, 0.5]]}}',NULL,NULL,'2026-11-20 23:28:49.503321','2026-11-20 23:28:49.506098',NULL,'{"manifest":null,"metric":"map@r","parts":{"backbone":"small_cnn","dataset":"digits","eta_schedule":null,"head":"fc","loss":"semihard","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":null,"versions":{"loss":1}}',NULL,'cd196f3ef5a1111c451f9999dfff1f4bf90acf5fccb3e68a447de6fe4c238368',NULL);
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
	mlflow_point INTEGER NOT NULL, slot JSON, reason TEXT, mlflow_left VARCHAR, evaluation_id INTEGER, 
	CONSTRAINT fk_trial_sweep_id_cell_candidate FOREIGN KEY(sweep_id, cell, candidate) REFERENCES candidate (sweep_id, cell, candidate), 
	CONSTRAINT fk_trial_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_trial_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_trial_sweep_id_cell_candidate_repeat UNIQUE (sweep_id, cell, candidate, repeat), 
	CONSTRAINT uq_trial_sweep_id_position UNIQUE (sweep_id, position), 
	CONSTRAINT uq_trial_uid UNIQUE (uid)
);
INSERT INTO "trial" VALUES(1,'132711e5-be7a-597f-a523-6063b6ab657f',1,0,0,0,0,'{"seed": "0"}',1,'finished',0,0,'2026-11-20 23:28:49.488685','2026-11-20 23:28:49.495159',NULL,0,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(2,'d8e96214-8ff5-56e6-a860-7952210aa2dd',1,0,0,1,1,'{"seed": "1"}',2,'failed',0,0,'2026-11-20 23:28:49.496791','2026-11-20 23:28:49.497959',NULL,0,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(3,'1d91390d-ca1c-51b5-a3b4-8120a921768b',1,1,0,0,2,'{"seed": "0"}',3,'finished',0,0,'2026-11-20 23:28:49.499336','2026-11-20 23:28:49.502243',NULL,0,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(4,'d86af45f-65e9-525f-a26b-5f908499a8e0',1,1,0,1,3,'{"seed": "1"}',4,'finished',0,0,'2026-11-20 23:28:49.503321','2026-11-20 23:28:49.506098',NULL,0,NULL,NULL,NULL,NULL);
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sweep',1);
INSERT INTO "sqlite_sequence" VALUES('training',4);
INSERT INTO "sqlite_sequence" VALUES('trial',4);
INSERT INTO "sqlite_sequence" VALUES('outbox',15);
INSERT INTO "sqlite_sequence" VALUES('attempt',4);
INSERT INTO "sqlite_sequence" VALUES('metric',6);
INSERT INTO "sqlite_sequence" VALUES('request',1);
COMMIT;
