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
INSERT INTO "alembic_version" VALUES('0001');
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
INSERT INTO "attempt" VALUES(1,'45ad8583-1304-4d93-b603-9beb15801afc',1,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',208,'2026-11-22 06:27:45.840574','2026-11-22 06:27:49.733050',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(2,'aa073f4d-a1a0-4825-b1f8-12dee9fa0817',2,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',209,'2026-11-22 06:27:49.738373','2026-11-22 06:27:50.298136',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(3,'78e308d7-4db1-45cb-a624-eeac99d8e550',3,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',205,'2026-11-22 06:27:50.302831','2026-11-22 06:27:51.035598',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(4,'92dd17db-e987-4ae7-8e2f-0c5575e90d84',4,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',205,'2026-11-22 06:27:51.043371','2026-11-22 06:27:51.902336',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(5,'e142c7fb-ef69-46dc-99bb-215a26aa3680',5,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',208,'2026-11-22 06:27:52.021760','2026-11-22 06:27:52.932065',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(6,'513f8ea8-984a-4a7b-a99a-0e4e82ea1286',7,1,'finished',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',24,'last.pt',208,'2026-11-22 06:27:52.982191','2026-11-22 06:27:53.548132',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(7,'b1749c97-e44a-4469-a257-2f310cc5064b',8,1,'failed',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',12,'last.pt',102,'2026-11-22 06:27:53.551518','2026-11-22 06:27:53.782125','RuntimeError: no luck',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(8,'a95e7e4c-ea6c-4f42-a27f-9eed1715fe44',9,1,'running',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',12,'last.pt',101,'2026-11-22 06:27:53.830068',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(9,'7cfc1959-eebf-4f5a-9022-b2a84852f676',10,1,'lost',1,'{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-3d33c10','host-a',12,'last.pt',102,'2026-11-22 06:27:54.056757','2026-11-22 06:27:54.243700','the machine went away',NULL,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "candidate" VALUES(1,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(1,1,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(2,0,0,'{"optimizer.lr": "0.00150909"}','{"optimizer.lr": 0.001509091492681201}',0,1,8.34714134122801598714e-01,NULL);
INSERT INTO "candidate" VALUES(2,0,1,'{"optimizer.lr": "0.00304752"}','{"optimizer.lr": 0.0030475226473685064}',2,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(3,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(4,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(4,1,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(5,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(6,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "cell" VALUES(1,0,'{"loss": "triplet"}','{"cell": 0, "status": "complete", "candidate": 0, "labels": {}, "selection_key": "best/validation/map@r", "score": {"mean": 0.7409639311751672, "std": 0.1661207538549354, "n": 2}, "metrics": {"last/test/map@r": {"mean": 0.2320371517591419, "std": 0.005781204448599428, "n": 2}, "last/test/recall@1": {"mean": 0.626750700280112, "std": 0.022777949534020438, "n": 2}, "last/test/recall@2": {"mean": 0.7773109243697479, "std": 0.011884147582967143, "n": 2}, "last/test/recall@4": {"mean": 0.873249299719888, "std": 0.02079725827019258, "n": 2}, "last/test/recall@8": {"mean": 0.9453781512605042, "std": 0.015845530110622934, "n": 2}, "last/test/r_precision": {"mean": 0.3967364841376128, "std": 0.008256514714206018, "n": 2}, "last/test/nmi": {"mean": 0.19005887387150655, "std": 0.002438053836634859, "n": 2}, "last/test/f1": {"mean": 0.3673633383237172, "std": 0.004443117700279969, "n": 2}, "last/test/norm_mean": {"mean": 0.7309756090535837, "std": 0.08373278199905584, "n": 2}, "last/test/norm_var": {"mean": 0.048174261646206355, "std": 0.02086921289400474, "n": 2}, "last/test/s_mu": {"mean": 6.290334729925134, "std": 0.09873860920674628, "n": 2}, "last/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "last/validation/map@r": {"mean": 0.7304271212557656, "std": 0.1704835524633192, "n": 2}, "last/validation/recall@1": {"mean": 0.9527777777777777, "std": 0.011785113019775828, "n": 2}, "last/validation/recall@2": {"mean": 0.975, "std": 0.0, "n": 2}, "last/validation/recall@4": {"mean": 0.9847222222222223, "std": 0.001964185503296037, "n": 2}, "last/validation/recall@8": {"mean": 0.9902777777777778, "std": 0.0019641855032959585, "n": 2}, "last/validation/r_precision": {"mean": 0.7797433869865745, "std": 0.14744934633263865, "n": 2}, "last/validation/nmi": {"mean": 0.5703193124759378, "std": 0.22163505180932142, "n": 2}, "last/validation/f1": {"mean": 0.8147396268429252, "std": 0.12045184888157298, "n": 2}, "last/validation/norm_mean": {"mean": 0.7798656069984038, "std": 0.02221958456139686, "n": 2}, "last/validation/norm_var": {"mean": 0.04656306070139457, "std": 0.029344945450247725, "n": 2}, "last/validation/s_mu": {"mean": 4.543578365037046, "std": 0.048370007167654265, "n": 2}, "last/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "last/train/norm_mean": {"mean": 0.7590184708436329, "std": 0.08586410631880041, "n": 2}, "last/train/norm_var": {"mean": 0.060015191476698634, "std": 0.046358601499324616, "n": 2}, "best/test/map@r": {"mean": 0.21996460085766997, "std": 0.005333187138610674, "n": 2}, "best/test/recall@1": {"mean": 0.5980392156862745, "std": 0.07328557676163103, "n": 2}, "best/test/recall@2": {"mean": 0.7457983193277311, "std": 0.056449701019094085, "n": 2}, "best/test/recall@4": {"mean": 0.8725490196078431, "std": 0.0396138252765573, "n": 2}, "best/test/recall@8": {"mean": 0.9432773109243697, "std": 0.01881656700636472, "n": 2}, "best/test/r_precision": {"mean": 0.38899155118359885, "std": 0.008406382074768463, "n": 2}, "best/test/nmi": {"mean": 0.16879087280402322, "std": 0.04031999371080071, "n": 2}, "best/test/f1": {"mean": 0.3551118643561466, "std": 0.018790209946038396, "n": 2}, "best/test/norm_mean": {"mean": 0.623593056089237, "std": 0.1460145879490435, "n": 2}, "best/test/norm_var": {"mean": 0.013228847912362467, "std": 0.01003740167541013, "n": 2}, "best/test/s_mu": {"mean": 5.21421632855746, "std": 0.059963293808752906, "n": 2}, "best/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "best/validation/map@r": {"mean": 0.7409639311751672, "std": 0.1661207538549354, "n": 2}, "best/validation/recall@1": {"mean": 0.95, "std": 0.015713484026367745, "n": 2}, "best/validation/recall@2": {"mean": 0.9805555555555556, "std": 0.011785113019775828, "n": 2}, "best/validation/recall@4": {"mean": 0.9902777777777778, "std": 0.0019641855032959585, "n": 2}, "best/validation/recall@8": {"mean": 0.9902777777777778, "std": 0.0019641855032959585, "n": 2}, "best/validation/r_precision": {"mean": 0.782848694044733, "std": 0.1515121699661534, "n": 2}, "best/validation/nmi": {"mean": 0.5867957014046548, "std": 0.2461591562351112, "n": 2}, "best/validation/f1": {"mean": 0.8109001569836135, "std": 0.1331684378142272, "n": 2}, "best/validation/norm_mean": {"mean": 0.6194849579698509, "std": 0.08427234179902049, "n": 2}, "best/validation/norm_var": {"mean": 0.011403464528276614, "std": 0.0026712696091998533, "n": 2}, "best/validation/s_mu": {"mean": 3.9264710954011965, "std": 0.05809534136612749, "n": 2}, "best/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "best/train/norm_mean": {"mean": 0.6222331731645893, "std": 0.15427803134652476, "n": 2}, "best/train/norm_var": {"mean": 0.0167776324262454, "std": 0.016749554160376122, "n": 2}}, "candidates": 1}','2026-11-22 06:27:51.920875',NULL,0);
INSERT INTO "cell" VALUES(1,1,'{"loss": "normface"}','{"cell": 1, "status": "complete", "candidate": 0, "labels": {}, "selection_key": "best/validation/map@r", "score": {"mean": 0.7556458294451087, "std": 0.23630907961258274, "n": 2}, "metrics": {"last/test/map@r": {"mean": 0.18448220213488983, "std": 0.002565494609791593, "n": 2}, "last/test/recall@1": {"mean": 0.6197478991596639, "std": 0.024758640797848293, "n": 2}, "last/test/recall@2": {"mean": 0.7738095238095237, "std": 0.030700714589331865, "n": 2}, "last/test/recall@4": {"mean": 0.8872549019607843, "std": 0.04060417090847123, "n": 2}, "last/test/recall@8": {"mean": 0.9488795518207283, "std": 0.024758640797848293, "n": 2}, "last/test/r_precision": {"mean": 0.35052328043915804, "std": 0.00010658640884609702, "n": 2}, "last/test/nmi": {"mean": 0.12946626904868486, "std": 0.011798380270429645, "n": 2}, "last/test/f1": {"mean": 0.3388774180247315, "std": 0.01809066206795522, "n": 2}, "last/test/norm_mean": {"mean": 0.760091278399406, "std": 0.07731244616525906, "n": 2}, "last/test/norm_var": {"mean": 0.046903891912395426, "std": 0.008054246018514608, "n": 2}, "last/test/s_mu": {"mean": 6.21240805328682, "std": 0.009618685773245327, "n": 2}, "last/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "last/validation/map@r": {"mean": 0.7238677200751595, "std": 0.28125011287014035, "n": 2}, "last/validation/recall@1": {"mean": 0.9694444444444444, "std": 0.01178511301977575, "n": 2}, "last/validation/recall@2": {"mean": 0.9819444444444445, "std": 0.005892556509887954, "n": 2}, "last/validation/recall@4": {"mean": 0.9847222222222223, "std": 0.005892556509887954, "n": 2}, "last/validation/recall@8": {"mean": 0.9875, "std": 0.005892556509887954, "n": 2}, "last/validation/r_precision": {"mean": 0.7722908928218414, "std": 0.23431567552981242, "n": 2}, "last/validation/nmi": {"mean": 0.4839757525236092, "std": 0.4741956564157456, "n": 2}, "last/validation/f1": {"mean": 0.7693429132378128, "std": 0.24211000637761212, "n": 2}, "last/validation/norm_mean": {"mean": 0.8460408901174863, "std": 0.003497373119034679, "n": 2}, "last/validation/norm_var": {"mean": 0.06013953891968355, "std": 0.040713262523332336, "n": 2}, "last/validation/s_mu": {"mean": 4.465199916266709, "std": 0.06608060919890817, "n": 2}, "last/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "last/train/norm_mean": {"mean": 0.7531389467325448, "std": 0.13731094454902731, "n": 2}, "last/train/norm_var": {"mean": 0.050299645771971824, "std": 0.031224685094822593, "n": 2}, "best/test/map@r": {"mean": 0.1903513485034174, "std": 0.01086572100371609, "n": 2}, "best/test/recall@1": {"mean": 0.6113445378151261, "std": 0.03664278838081544, "n": 2}, "best/test/recall@2": {"mean": 0.7675070028011204, "std": 0.03961382527655723, "n": 2}, "best/test/recall@4": {"mean": 0.8886554621848739, "std": 0.03862347964464329, "n": 2}, "best/test/recall@8": {"mean": 0.9488795518207283, "std": 0.024758640797848293, "n": 2}, "best/test/r_precision": {"mean": 0.3556680486856454, "std": 0.007169214620602724, "n": 2}, "best/test/nmi": {"mean": 0.12119435924851227, "std": 0.00010013324429866004, "n": 2}, "best/test/f1": {"mean": 0.3296265581231671, "std": 0.00500797053154948, "n": 2}, "best/test/norm_mean": {"mean": 0.6697454040541369, "std": 0.20508080696879422, "n": 2}, "best/test/norm_var": {"mean": 0.0292494333056786, "std": 0.03302142081648796, "n": 2}, "best/test/s_mu": {"mean": 5.700225947953276, "std": 0.7147161939942562, "n": 2}, "best/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "best/validation/map@r": {"mean": 0.7556458294451087, "std": 0.23630907961258274, "n": 2}, "best/validation/recall@1": {"mean": 0.9652777777777777, "std": 0.017677669529663705, "n": 2}, "best/validation/recall@2": {"mean": 0.9805555555555556, "std": 0.007856742013183912, "n": 2}, "best/validation/recall@4": {"mean": 0.9847222222222223, "std": 0.005892556509887954, "n": 2}, "best/validation/recall@8": {"mean": 0.9902777777777778, "std": 0.0019641855032959585, "n": 2}, "best/validation/r_precision": {"mean": 0.7946137365476723, "std": 0.20274640718200718, "n": 2}, "best/validation/nmi": {"mean": 0.5896128447362067, "std": 0.32480224791903306, "n": 2}, "best/validation/f1": {"mean": 0.8230075814190558, "std": 0.1662167048154464, "n": 2}, "best/validation/norm_mean": {"mean": 0.7085629588199986, "std": 0.19092578184886902, "n": 2}, "best/validation/norm_var": {"mean": 0.020473045702782158, "std": 0.015383630155789993, "n": 2}, "best/validation/s_mu": {"mean": 4.172876297719792, "std": 0.34732741675212064, "n": 2}, "best/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "best/train/norm_mean": {"mean": 0.6808418060033319, "std": 0.23955454148907654, "n": 2}, "best/train/norm_var": {"mean": 0.03829609774045059, "std": 0.048200265517596784, "n": 2}}, "candidates": 1}','2026-11-22 06:27:51.924410',NULL,0);
INSERT INTO "cell" VALUES(2,0,'{}',NULL,NULL,NULL,1);
INSERT INTO "cell" VALUES(3,0,'{}','{"cell": 0, "status": "failed", "candidate": null, "labels": {}, "selection_key": "best/validation/map@r", "score": null, "metrics": {}, "candidates": 1}','2026-11-22 06:27:53.801538',NULL,0);
INSERT INTO "cell" VALUES(4,0,'{"loss": "triplet"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(4,1,'{"loss": "normface"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(5,0,'{}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(6,0,'{}',NULL,NULL,NULL,0);
CREATE TABLE change (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind VARCHAR(8) NOT NULL, 
	sweep_id INTEGER NOT NULL, 
	entity INTEGER NOT NULL, 
	state VARCHAR(16)
);
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
INSERT INTO "lease" VALUES('conductor','conductor of 3d33c10',1,0.0,600.0);
CREATE TABLE log (
	attempt_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	start INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_log PRIMARY KEY (attempt_id, seq), 
	CONSTRAINT fk_log_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
INSERT INTO "log" VALUES(1,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(1,11,28,'step 10/20 loss 0.5688 validation/map@r 0.8584 validation/recall@1 0.9611
');
INSERT INTO "log" VALUES(1,23,102,'step 20/20 loss 0.3954 validation/map@r 0.851 validation/recall@1 0.9611
');
INSERT INTO "log" VALUES(1,24,175,'done: keeping step 10 as best.pt
');
INSERT INTO "log" VALUES(2,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(2,11,28,'step 10/20 loss 0.9145 validation/map@r 0.6235 validation/recall@1 0.9389
');
INSERT INTO "log" VALUES(2,23,102,'step 20/20 loss 0.4948 validation/map@r 0.6099 validation/recall@1 0.9444
');
INSERT INTO "log" VALUES(2,24,176,'done: keeping step 10 as best.pt
');
INSERT INTO "log" VALUES(3,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(3,11,28,'step 10/20 loss 21.37 validation/map@r 0.8756 validation/recall@1 0.975
');
INSERT INTO "log" VALUES(3,23,100,'step 20/20 loss 14.8 validation/map@r 0.9227 validation/recall@1 0.9778
');
INSERT INTO "log" VALUES(3,24,172,'done: keeping step 20 as best.pt
');
INSERT INTO "log" VALUES(4,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(4,11,28,'step 10/20 loss 21.31 validation/map@r 0.5886 validation/recall@1 0.9528
');
INSERT INTO "log" VALUES(4,23,101,'step 20/20 loss 19.7 validation/map@r 0.525 validation/recall@1 0.9611
');
INSERT INTO "log" VALUES(4,24,172,'done: keeping step 10 as best.pt
');
INSERT INTO "log" VALUES(5,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(5,11,28,'step 10/20 loss 0.5312 validation/map@r 0.8347 validation/recall@1 0.9667
');
INSERT INTO "log" VALUES(5,23,102,'step 20/20 loss 0.172 validation/map@r 0.8066 validation/recall@1 0.9639
');
INSERT INTO "log" VALUES(5,24,175,'done: keeping step 10 as best.pt
');
INSERT INTO "log" VALUES(6,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(6,11,28,'step 10/20 loss 0.7087 validation/map@r 0.3653 validation/recall@1 0.825
');
INSERT INTO "log" VALUES(6,23,101,'step 20/20 loss 0.8139 validation/map@r 0.3997 validation/recall@1 0.8806
');
INSERT INTO "log" VALUES(6,24,175,'done: keeping step 20 as best.pt
');
INSERT INTO "log" VALUES(7,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(7,11,28,'step 10/20 loss 0.6498 validation/map@r 0.4839 validation/recall@1 0.8694
');
INSERT INTO "log" VALUES(8,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(8,11,28,'step 10/20 loss 1.038 validation/map@r 0.5428 validation/recall@1 0.9306
');
INSERT INTO "log" VALUES(9,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(9,11,28,'step 10/20 loss 0.9837 validation/map@r 0.5064 validation/recall@1 0.8361
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
INSERT INTO "metric" VALUES(1,1,'train/loss',10,5.68829655647277832031e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(2,1,'train/lr',10,0.001,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(3,1,'train/norm_mean',10,1.21259552612900733947e+00,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(4,1,'train/norm_var',10,2.0516217292542046624e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(5,1,'train/s_mu',10,1.02021288871765136718e+00,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(6,1,'train/cos_ap',10,7.45594452705690358129e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(7,1,'train/cos_an',10,4.47213236854679341281e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(8,1,'validation/map@r',10,8.58429042721813417848e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(9,1,'validation/recall@1',10,9.61111111111111138249e-01,'2026-11-22 06:27:49.341837');
INSERT INTO "metric" VALUES(10,1,'train/loss',20,3.95436882972717285156e-01,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(11,1,'train/lr',20,0.001,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(12,1,'train/norm_mean',20,1.10956570133566856384e+00,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(13,1,'train/norm_var',20,3.23710363766029796117e-01,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(14,1,'train/s_mu',20,1.04382419586181640625e+00,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(15,1,'train/cos_ap',20,0.833454883969508,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(16,1,'train/cos_an',20,3.82938158012412765973e-01,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(17,1,'validation/map@r',20,8.50977197283351083356e-01,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(18,1,'validation/recall@1',20,9.61111111111111138249e-01,'2026-11-22 06:27:49.617333');
INSERT INTO "metric" VALUES(19,2,'train/loss',10,9.14540410041809082031e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(20,2,'train/lr',10,0.001,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(21,2,'train/norm_mean',10,1.23628989048302173614e+00,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(22,2,'train/norm_var',10,2.08448658943580028557e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(23,2,'train/s_mu',10,1.07030022144317626953e+00,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(24,2,'train/cos_ap',10,5.03712267023834092682e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(25,2,'train/cos_an',10,4.01285145619704408659e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(26,2,'validation/map@r',10,6.23498819628521161462e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(27,2,'validation/recall@1',10,9.38888888888888883954e-01,'2026-11-22 06:27:49.993824');
INSERT INTO "metric" VALUES(28,2,'train/loss',20,4.94767308235168457031e-01,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(29,2,'train/lr',20,0.001,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(30,2,'train/norm_mean',20,1.18631334230303764343e+00,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(31,2,'train/norm_var',20,2.86296131731732350633e-01,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(32,2,'train/s_mu',20,1.00473940372467041015e+00,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(33,2,'train/cos_ap',20,0.776404976038222,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(34,2,'train/cos_an',20,4.313908745907708564e-01,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(35,2,'validation/map@r',20,0.60987704522818,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(36,2,'validation/recall@1',20,9.44444444444444419772e-01,'2026-11-22 06:27:50.250040');
INSERT INTO "metric" VALUES(37,3,'train/loss',10,2.13685493469238281245e+01,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(38,3,'train/lr',10,0.001,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(39,3,'train/norm_mean',10,1.22592165693640708923e+00,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(40,3,'train/norm_var',10,1.93744781013095224153e-01,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(41,3,'train/s_mu',10,1.03199124336242675781e+00,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(42,3,'train/cos_ap',10,7.50620020990040326402e-01,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(43,3,'train/cos_an',10,4.99778158112286929881e-01,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(44,3,'validation/map@r',10,8.75553897939747916012e-01,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(45,3,'validation/recall@1',10,0.975,'2026-11-22 06:27:50.566563');
INSERT INTO "metric" VALUES(46,3,'train/loss',20,1.47992429733276367187e+01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(47,3,'train/lr',20,0.001,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(48,3,'train/norm_mean',20,1.12501576915383338928e+00,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(49,3,'train/norm_var',20,2.18000963935564312512e-01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(50,3,'train/s_mu',20,1.04946279525756835937e+00,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(51,3,'train/cos_ap',20,7.39968459291043489933e-01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(52,3,'train/cos_an',20,4.74427205669524176823e-01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(53,3,'validation/map@r',20,9.22741582095117696127e-01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(54,3,'validation/recall@1',20,9.77777777777777745704e-01,'2026-11-22 06:27:51.019370');
INSERT INTO "metric" VALUES(55,4,'train/loss',10,2.13103008270263671875e+01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(56,4,'train/lr',10,0.001,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(57,4,'train/norm_mean',10,1.21864868700504302978e+00,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(58,4,'train/norm_var',10,2.79772690630807285838e-01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(59,4,'train/s_mu',10,1.05607259273529052734e+00,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(60,4,'train/cos_ap',10,4.6704494570869248271e-01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(61,4,'train/cos_an',10,5.31791941289778247181e-01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(62,4,'validation/map@r',10,5.88550076795099741389e-01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(63,4,'validation/recall@1',10,9.527777777777777235e-01,'2026-11-22 06:27:51.367460');
INSERT INTO "metric" VALUES(64,4,'train/loss',20,1.9703189849853515625e+01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(65,4,'train/lr',20,0.001,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(66,4,'train/norm_mean',20,1.2068304009735584259e+00,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(67,4,'train/norm_var',20,1.97922507698828326061e-01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(68,4,'train/s_mu',20,1.01487660408020019531e+00,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(69,4,'train/cos_ap',20,5.96147023158502098461e-01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(70,4,'train/cos_an',20,5.26708205370869375627e-01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(71,4,'validation/map@r',20,5.24993858055201489953e-01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(72,4,'validation/recall@1',20,9.61111111111111138249e-01,'2026-11-22 06:27:51.749126');
INSERT INTO "metric" VALUES(73,5,'train/loss',10,0.531176745891571,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(74,5,'train/lr',10,0.00150909,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(75,5,'train/norm_mean',10,1.03079614043235778808e+00,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(76,5,'train/norm_var',10,1.07433692561635929507e-01,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(77,5,'train/s_mu',10,1.2097898721694946289e+00,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(78,5,'train/cos_ap',10,6.17467145994239907658e-01,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(79,5,'train/cos_an',10,1.64893683592710699192e-01,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(80,5,'validation/map@r',10,8.34714134122801598714e-01,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(81,5,'validation/recall@1',10,9.66666666666666674068e-01,'2026-11-22 06:27:52.255141');
INSERT INTO "metric" VALUES(82,5,'train/loss',20,1.71976104378700256347e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(83,5,'train/lr',20,0.00150909,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(84,5,'train/norm_mean',20,9.78055259212851524353e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(85,5,'train/norm_var',20,1.65329790807888399317e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(86,5,'train/s_mu',20,1.19472527503967285156e+00,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(87,5,'train/cos_ap',20,8.45262616789873910683e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(88,5,'train/cos_an',20,1.23000040064024027119e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(89,5,'validation/map@r',20,8.06620594854239092441e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(90,5,'validation/recall@1',20,9.63888888888888906159e-01,'2026-11-22 06:27:52.867225');
INSERT INTO "metric" VALUES(91,6,'train/loss',10,7.08709239959716796875e-01,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(92,6,'train/lr',10,0.001,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(93,6,'train/norm_mean',10,1.21069974265992641448e+00,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(94,6,'train/norm_var',10,2.62251495843150161935e-01,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(95,6,'train/s_mu',10,1.14662063121795654296e+00,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(96,6,'train/cos_ap',10,5.45713392353968540504e-01,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(97,6,'train/cos_an',10,2.91368652839906039364e-01,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(98,6,'validation/map@r',10,3.65330057408196462453e-01,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(99,6,'validation/recall@1',10,0.825,'2026-11-22 06:27:53.231095');
INSERT INTO "metric" VALUES(100,6,'train/loss',20,0.813861608505249,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(101,6,'train/lr',20,0.001,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(102,6,'train/norm_mean',20,1.16801153868436813354e+00,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(103,6,'train/norm_var',20,4.9527258088557857274e-01,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(104,6,'train/s_mu',20,1.15572667121887207031e+00,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(105,6,'train/cos_ap',20,5.09339719274987889896e-01,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(106,6,'train/cos_an',20,3.57263249013030970147e-01,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(107,6,'validation/map@r',20,3.99703238257274828804e-01,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(108,6,'validation/recall@1',20,8.80555555555555535818e-01,'2026-11-22 06:27:53.521461');
INSERT INTO "metric" VALUES(109,7,'train/loss',10,6.49832606315612792968e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(110,7,'train/lr',10,0.001,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(111,7,'train/norm_mean',10,1.30026360601186752319e+00,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(112,7,'train/norm_var',10,1.42964236000063055209e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(113,7,'train/s_mu',10,1.09819877147674560546e+00,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(114,7,'train/cos_ap',10,5.82181384197320239692e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(115,7,'train/cos_an',10,2.99117474175821795867e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(116,7,'validation/map@r',10,4.83869659590126677262e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(117,7,'validation/recall@1',10,8.69444444444444464181e-01,'2026-11-22 06:27:53.730923');
INSERT INTO "metric" VALUES(118,8,'train/loss',10,1.0382137298583984375e+00,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(119,8,'train/lr',10,0.001,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(120,8,'train/norm_mean',10,1.22109521552920341491e+00,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(121,8,'train/norm_var',10,2.92640847965195460833e-01,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(122,8,'train/s_mu',10,1.0466333627700805664e+00,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(123,8,'train/cos_ap',10,4.9558672354584487607e-01,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(124,8,'train/cos_an',10,4.92944933622171899134e-01,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(125,8,'validation/map@r',10,5.42800446584428941676e-01,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(126,8,'validation/recall@1',10,9.30555555555555580227e-01,'2026-11-22 06:27:54.033141');
INSERT INTO "metric" VALUES(127,9,'train/loss',10,9.83734846115112304687e-01,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(128,9,'train/lr',10,0.001,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(129,9,'train/norm_mean',10,1.12085220962762832641e+00,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(130,9,'train/norm_var',10,2.86164032699848136509e-01,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(131,9,'train/s_mu',10,1.15605187416076660156e+00,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(132,9,'train/cos_ap',10,3.82143380033629131986e-01,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(133,9,'train/cos_an',10,3.07906346635985317394e-01,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(134,9,'validation/map@r',10,5.0639820228873433372e-01,'2026-11-22 06:27:54.224614');
INSERT INTO "metric" VALUES(135,9,'validation/recall@1',10,8.36111111111111138249e-01,'2026-11-22 06:27:54.224614');
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
INSERT INTO "outbox" VALUES(1,'sweep',1,1,4,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(2,'trial',1,1,5,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(6,'trial',1,2,5,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(10,'trial',1,3,5,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(14,'trial',1,4,5,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(18,'cell',1,0,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(22,'cell',1,1,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(27,'sweep',2,2,5,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(29,'trial',2,5,4,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(35,'sweep',3,3,3,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(36,'trial',3,7,4,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(40,'trial',3,8,3,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(43,'cell',3,0,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(46,'trial',4,9,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(47,'trial',4,13,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(48,'sweep',4,4,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(49,'trial',4,10,2,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(51,'trial',4,11,3,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(54,'sweep',5,5,1,0,0.0,NULL,0.0);
INSERT INTO "outbox" VALUES(55,'sweep',6,6,1,0,0.0,NULL,0.0);
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
INSERT INTO "project" VALUES(1,'main',1,'2026-11-27 00:51:22.024851');
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
INSERT INTO "sweep" VALUES(1,'274f57f5-3845-4c4d-a746-1cbc294c10cc','finished','version: 1
name: finished
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
compare:
  loss:
  - triplet
  - normface
repeat:
  seed:
  - 0
  - 1
','{"version": 1, "name": "finished", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}, {"label": "normface", "patch": {"loss": {"name": "normface"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "1", "patch": {"seed": 1}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',4,NULL,NULL,'db92f38ea3afdde2147b7ff56f9f7f983561d011f783361455fcf1548790842c','2026-11-22 06:27:45.695981','finished','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:45.724231','2026-11-22 06:27:51.931920',NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(2,'e578ac1a-8b80-4cd9-a8f4-93ba4abe7321','search','version: 1
name: search
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 7
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
tune:
  optimizer.lr:
    low: 0.001
    high: 0.01
    log: true
search:
  name: tpe
  trials: 3
  parallel: 1
','{"version": 1, "name": "search", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 7, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {}, "tune": {"optimizer.lr": [{"when": {}, "choices": [{"label": "0.001", "patch": {"optimizer.lr": 0.001}}, {"label": "0.01", "patch": {"optimizer.lr": 0.01}}], "span": {"low": 0.001, "high": 0.01, "log": true, "step": null, "whole": false}}]}, "repeat": {}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "tpe", "trials": 3, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',3,NULL,NULL,'447fba2495d08f932dcf2ee195b4ba8acd747841f8000982cd23d3508d66733c','2026-11-22 06:27:51.954036','running','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:51.961073',NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(3,'0c2a3e6e-494e-48e9-afde-ce81f0c5e077','failed','version: 1
name: failed
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
repeat:
  seed:
  - 10
  - 11
','{"version": 1, "name": "failed", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "10", "patch": {"seed": 10}}, {"label": "11", "patch": {"seed": 11}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',2,NULL,NULL,'6adfae30746b4ea3f05e716a4993b7093d619ed173ed639d2ebaec09c4f72f37','2026-11-22 06:27:52.961463','failed','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:52.967003','2026-11-22 06:27:53.805734',NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(4,'f18f8dd3-3317-45ca-9fcc-5cf5ad3f4840','half','version: 1
name: half
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
compare:
  loss:
  - triplet
  - normface
repeat:
  seed:
  - 0
  - 20
  - 21
  - 22
','{"version": 1, "name": "half", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}, {"label": "normface", "patch": {"loss": {"name": "normface"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "20", "patch": {"seed": 20}}, {"label": "21", "patch": {"seed": 21}}, {"label": "22", "patch": {"seed": 22}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',8,NULL,NULL,'b27340d5841365da19e17e7f28c31fec0a0ea56435042b9c6c6aa916fe9a1af8','2026-11-22 06:27:53.813239','running','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:53.822691',NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(5,'2209b704-ff67-4d07-b831-c8ecff074f6d','shares','version: 1
name: shares
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
repeat:
  seed:
  - 21
  - 22
','{"version": 1, "name": "shares", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "21", "patch": {"seed": 21}}, {"label": "22", "patch": {"seed": 22}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',2,NULL,NULL,'133412e9525183bc426a5cfe3fc89059ebd8c4dbfac23529dc0021f903e414dc','2026-11-22 06:27:54.250769','running','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:54.259511',NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(6,'bbb03c37-dd63-47fc-8954-88a3d1418a8a','fresh','version: 1
name: fresh
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
fresh: true
repeat:
  seed:
  - 0
  - 21
','{"version": 1, "name": "fresh", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "21", "patch": {"seed": 21}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": true}',2,NULL,NULL,'2f2085b008a12e71997b42a214617414dbff47fd8493d32d762779dba38f54cf','2026-11-22 06:27:54.264808','running','{"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 06:27:54.273672',NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
INSERT INTO "sweep" VALUES(7,'b62360ed-e2c7-47ff-b57d-75be422d69d7','queued','version: 1
name: queued
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 8
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 10
  validation:
    name: class_holdout
    folds: 3
    fold: 0
slot:
  cpus: 1
  gpus: 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - map@r
    - recall@1
repeat:
  seed:
  - 30
','{"version": 1, "name": "queued", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 8}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 10}, "compare": {}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "30", "patch": {"seed": 30}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": 0.0, "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'e92956357e91658aec532e02a9cbc763268ff606a327842382d6cb587027f377','2026-11-22 06:27:54.300132','queued',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1,NULL,NULL);
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
INSERT INTO "training" VALUES(1,'b01709ff-e2b2-4afb-a69b-871719f39934','8e3a2de85f93c3e4c2dbd082e87b318d75e5d70a585383d4fd7d97eef226069c',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,208,0,'{"last/test/map@r": 0.2279492228901114, "last/test/recall@1": 0.6428571428571429, "last/test/recall@2": 0.7857142857142857, "last/test/recall@4": 0.8879551820728291, "last/test/recall@8": 0.9565826330532213, "last/test/r_precision": 0.3908982465942312, "last/test/nmi": 0.18833490947072415, "last/test/f1": 0.36422157966823926, "last/test/norm_mean": 0.7901836270127309, "last/test/norm_var": 0.06293102360158284, "last/test/s_mu": 6.360153470060153, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.8509771972833511, "last/validation/recall@1": 0.9611111111111111, "last/validation/recall@2": 0.975, "last/validation/recall@4": 0.9833333333333333, "last/validation/recall@8": 0.9888888888888889, "last/validation/r_precision": 0.8840058196599071, "last/validation/nmi": 0.7270389605589408, "last/validation/f1": 0.8999119459935427, "last/validation/norm_mean": 0.7641539880798922, "last/validation/norm_var": 0.02581305077997508, "last/validation/s_mu": 4.509375604962756, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.8197335626821795, "last/train/norm_var": 0.09279567296319592, "best/test/map@r": 0.22373573364871846, "best/test/recall@1": 0.6498599439775911, "best/test/recall@2": 0.7857142857142857, "best/test/recall@4": 0.9005602240896359, "best/test/recall@8": 0.9565826330532213, "best/test/r_precision": 0.3949357609539127, "best/test/nmi": 0.19730141377432936, "best/test/f1": 0.36839854922890924, "best/test/norm_mean": 0.7268409613801652, "best/test/norm_var": 0.020326362702538184, "best/test/s_mu": 5.25661678023191, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.8584290427218134, "best/validation/recall@1": 0.9611111111111111, "best/validation/recall@2": 0.9888888888888889, "best/validation/recall@4": 0.9888888888888889, "best/validation/recall@8": 0.9888888888888889, "best/validation/r_precision": 0.8899839768600888, "best/validation/nmi": 0.7608565100296607, "best/validation/f1": 0.9050644624020726, "best/validation/norm_mean": 0.6790745023224088, "best/validation/norm_var": 0.013292337383319369, "best/validation/s_mu": 3.8853914855658607, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.7313242153178277, "best/train/norm_var": 0.028621355754898704}',8.58429042721813417848e-01,10,6.42977186000280198641e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.838021993637085], [2, 0.7234732508659363], [3, 0.6806278824806213], [4, 0.6935587525367737], [5, 0.7780237793922424], [6, 0.7170937657356262], [7, 0.8857540488243103], [8, 0.8636223077774048], [9, 0.5009403228759766], [10, 0.5688296556472778], [11, 0.6066247224807739], [12, 0.8377376198768616], [13, 0.5710365772247314], [14, 0.511462390422821], [15, 0.5595704317092896], [16, 0.6842005848884583], [17, 0.6849777698516846], [18, 0.5469192266464233], [19, 0.45743927359580994], [20, 0.3954368829727173]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.1748833730816841], [2, 1.0872854627668858], [3, 1.1612202282994986], [4, 1.1599368266761303], [5, 1.1293065212666988], [6, 1.1413538679480553], [7, 1.048321546986699], [8, 1.1244188621640205], [9, 1.11050608381629], [10, 1.2125955261290073], [11, 1.1507833003997803], [12, 1.127931509166956], [13, 1.1864582225680351], [14, 1.1586861200630665], [15, 1.0905931927263737], [16, 1.1883565485477448], [17, 1.1777506303042173], [18, 1.209465354681015], [19, 1.1425130292773247], [20, 1.1095657013356686]], "train/norm_var": [[1, 0.2676351547189689], [2, 0.2722039528741764], [3, 0.3622567918990057], [4, 0.1902970279428903], [5, 0.2998146694854645], [6, 0.2081030634048794], [7, 0.26201772817354324], [8, 0.3550949560763196], [9, 0.35656688691224986], [10, 0.20516217292542047], [11, 0.2823874492263432], [12, 0.2392690754651596], [13, 0.17010177573643617], [14, 0.3405223516174622], [15, 0.2538986126188592], [16, 0.2887107480968383], [17, 0.17398823854668863], [18, 0.2315191023662697], [19, 0.2508353383785312], [20, 0.3237103637660298]], "train/s_mu": [[1, 1.0395671129226685], [2, 1.0459753274917603], [3, 1.0591585636138916], [4, 1.0446465015411377], [5, 1.068007469177246], [6, 1.0727890729904175], [7, 1.051859974861145], [8, 1.0319660902023315], [9, 1.0458629131317139], [10, 1.0202128887176514], [11, 1.0705283880233765], [12, 1.0581892728805542], [13, 1.0576024055480957], [14, 1.0508792400360107], [15, 1.0642684698104858], [16, 1.042895793914795], [17, 1.047829508781433], [18, 1.0729531049728394], [19, 1.0659455060958862], [20, 1.0438241958618164]], "train/cos_ap": [[1, 0.6354357233394682], [2, 0.7219676355554112], [3, 0.7015528291895263], [4, 0.6893441947044071], [5, 0.6657328521437013], [6, 0.6903728724706001], [7, 0.6758948230217156], [8, 0.642221408248012], [9, 0.7894354566666357], [10, 0.7455944527056904], [11, 0.7096658356310481], [12, 0.6268814642770638], [13, 0.7339870423481454], [14, 0.7632531556256955], [15, 0.7513698367873752], [16, 0.6833822933814364], [17, 0.6704465804471788], [18, 0.7060219339398125], [19, 0.772424152653806], [20, 0.833454883969508]], "train/cos_an": [[1, 0.5218512157677173], [2, 0.5443430755401932], [3, 0.507958634425916], [4, 0.4924675849012508], [5, 0.5175946302830184], [6, 0.5331234484687516], [7, 0.6049175926961062], [8, 0.5298621764784933], [9, 0.4850567885627965], [10, 0.44721323685467934], [11, 0.4418925402515442], [12, 0.5168011035998687], [13, 0.42496297760804946], [14, 0.45611793371377346], [15, 0.47578801813993987], [16, 0.45953224021106714], [17, 0.43989458444424584], [18, 0.3664430121732421], [19, 0.40155417385342895], [20, 0.38293815801241277]], "validation/map@r": [[10, 0.8584290427218134], [20, 0.8509771972833511]], "validation/recall@1": [[10, 0.9611111111111111], [20, 0.9611111111111111]]}}',NULL,NULL,'2026-11-22 06:27:45.840574','2026-11-22 06:27:49.734277',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'8e3a2de85f93c3e4c2dbd082e87b318d75e5d70a585383d4fd7d97eef226069c',NULL,'4f6a37054738e28bef5f9160578134b9');
INSERT INTO "training" VALUES(2,'ea9f4408-11ea-4053-a65d-0de9c262fd2b','deae2b4e6c7b9fc80c2e97e2014ecd969d360d7ce9f16144fd55b38602a6cd08',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,209,0,'{"last/test/map@r": 0.2361250806281724, "last/test/recall@1": 0.6106442577030813, "last/test/recall@2": 0.7689075630252101, "last/test/recall@4": 0.8585434173669467, "last/test/recall@8": 0.9341736694677871, "last/test/r_precision": 0.4025747216809944, "last/test/nmi": 0.19178283827228892, "last/test/f1": 0.37050509697919515, "last/test/norm_mean": 0.6717675910944364, "last/test/norm_var": 0.03341749969082987, "last/test/s_mu": 6.220515989790115, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.60987704522818, "last/validation/recall@1": 0.9444444444444444, "last/validation/recall@2": 0.975, "last/validation/recall@4": 0.9861111111111112, "last/validation/recall@8": 0.9916666666666667, "last/validation/r_precision": 0.675480954313242, "last/validation/nmi": 0.4135996643929349, "last/validation/f1": 0.7295673076923077, "last/validation/norm_mean": 0.7955772259169155, "last/validation/norm_var": 0.06731307062281407, "last/validation/s_mu": 4.577781125111336, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.6983033790050865, "last/train/norm_var": 0.02723470999020135, "best/test/map@r": 0.21619346806662149, "best/test/recall@1": 0.5462184873949579, "best/test/recall@2": 0.7058823529411765, "best/test/recall@4": 0.8445378151260504, "best/test/recall@8": 0.9299719887955182, "best/test/r_precision": 0.38304734141328506, "best/test/nmi": 0.1402803318337171, "best/test/f1": 0.3418251794833839, "best/test/norm_mean": 0.5203451507983088, "best/test/norm_var": 0.00613133312218675, "best/test/s_mu": 5.171815876883009, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.6234988196285212, "best/validation/recall@1": 0.9388888888888889, "best/validation/recall@2": 0.9722222222222222, "best/validation/recall@4": 0.9916666666666667, "best/validation/recall@8": 0.9916666666666667, "best/validation/r_precision": 0.6757134112293771, "best/validation/nmi": 0.4127348927796488, "best/validation/f1": 0.7167358515651544, "best/validation/norm_mean": 0.559895413617293, "best/validation/norm_var": 0.009514591673233859, "best/validation/s_mu": 3.967550705236533, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.5131421310113509, "best/train/norm_var": 0.004933909097592094}',6.23498819628521161462e-01,10,5.3451321700049447827e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.8234081268310547], [2, 0.8519216775894165], [3, 0.7919812798500061], [4, 0.9047460556030273], [5, 0.9622978568077087], [6, 0.994329035282135], [7, 0.7287907004356384], [8, 1.0285930633544922], [9, 0.9033952355384827], [10, 0.9145404100418091], [11, 0.43781760334968567], [12, 0.7239416837692261], [13, 0.5693976879119873], [14, 0.6238594055175781], [15, 0.5110445022583008], [16, 0.4411422312259674], [17, 0.6168721914291382], [18, 0.6262983083724976], [19, 0.5641881823539734], [20, 0.49476730823516846]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.125192392617464], [2, 1.1908058188855648], [3, 1.1823604851961136], [4, 1.1342369765043259], [5, 1.2244920618832111], [6, 1.112075287848711], [7, 1.1727044768631458], [8, 1.2217879071831703], [9, 1.2048981562256813], [10, 1.2362898904830217], [11, 1.1695183776319027], [12, 1.2087600380182266], [13, 1.2278704531490803], [14, 1.2659878805279732], [15, 1.1761316880583763], [16, 1.2213704362511635], [17, 1.2557163797318935], [18, 1.1996088176965714], [19, 1.2321171797811985], [20, 1.1863133423030376]], "train/norm_var": [[1, 0.19025783657565937], [2, 0.1273054446936159], [3, 0.11277927506899421], [4, 0.15870488911081154], [5, 0.11325782565516207], [6, 0.3012743362102336], [7, 0.2883120611053782], [8, 0.19977477854870376], [9, 0.2212826935143889], [10, 0.20844865894358003], [11, 0.2743485168797815], [12, 0.2407437028437066], [13, 0.21793092066593328], [14, 0.1523371850566123], [15, 0.295386587200913], [16, 0.18417213984550376], [17, 0.20789409934241362], [18, 0.28281867104641123], [19, 0.15123435500571045], [20, 0.28629613173173235]], "train/s_mu": [[1, 1.0118484497070312], [2, 1.0310053825378418], [3, 1.0197614431381226], [4, 1.0635120868682861], [5, 1.0142090320587158], [6, 1.0760763883590698], [7, 1.0157736539840698], [8, 1.0591148138046265], [9, 1.0468419790267944], [10, 1.0703002214431763], [11, 1.0347450971603394], [12, 1.0405696630477905], [13, 1.0555797815322876], [14, 1.048337697982788], [15, 1.0286840200424194], [16, 1.0221900939941406], [17, 1.0636316537857056], [18, 1.0481510162353516], [19, 1.0668113231658936], [20, 1.0047394037246704]], "train/cos_ap": [[1, 0.652708190689227], [2, 0.5804255100957408], [3, 0.678280382108207], [4, 0.5726097680297267], [5, 0.5917809071349636], [6, 0.5288453580404244], [7, 0.6904097895405679], [8, 0.45041781368611905], [9, 0.5961695559361629], [10, 0.5037122670238341], [11, 0.7857719965856383], [12, 0.6416271133480781], [13, 0.6740095187260963], [14, 0.6625796209566096], [15, 0.7575598159762617], [16, 0.8078613052488645], [17, 0.6463310317049121], [18, 0.679466195469823], [19, 0.6522757855827703], [20, 0.776404976038222]], "train/cos_an": [[1, 0.5268289706183351], [2, 0.44204309584202944], [3, 0.5319372692041676], [4, 0.4897868702793977], [5, 0.5472765898302431], [6, 0.493883701365107], [7, 0.5003170442710426], [8, 0.41084384618513536], [9, 0.511894194607399], [10, 0.4012851456197044], [11, 0.3661104412318341], [12, 0.4378751227943443], [13, 0.3415765073853569], [14, 0.3688051135972581], [15, 0.391984666701716], [16, 0.4390746982503386], [17, 0.3588308200298788], [18, 0.399992124419678], [19, 0.33954588816209985], [20, 0.43139087459077086]], "validation/map@r": [[10, 0.6234988196285212], [20, 0.60987704522818]], "validation/recall@1": [[10, 0.9388888888888889], [20, 0.9444444444444444]]}}',NULL,NULL,'2026-11-22 06:27:49.738373','2026-11-22 06:27:50.298637',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'deae2b4e6c7b9fc80c2e97e2014ecd969d360d7ce9f16144fd55b38602a6cd08',NULL,'4f6a37054738e28bef5f9160578134b9');
INSERT INTO "training" VALUES(3,'c192cbf9-0357-445f-b2d8-6fe02debe8b2','6a795904386d4f233096f7c85ac44a20d1655b965c5db73af9920963c1462a65',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,205,0,'{"last/test/map@r": 0.18266812349920866, "last/test/recall@1": 0.6372549019607843, "last/test/recall@2": 0.7955182072829131, "last/test/recall@4": 0.9159663865546218, "last/test/recall@8": 0.9663865546218487, "last/test/r_precision": 0.35059864841163546, "last/test/nmi": 0.12112355435244648, "last/test/f1": 0.32608538820032607, "last/test/norm_mean": 0.8147594333529806, "last/test/norm_var": 0.052599103889431856, "last/test/s_mu": 6.205606615350455, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.9227415820951177, "last/validation/recall@1": 0.9777777777777777, "last/validation/recall@2": 0.9861111111111112, "last/validation/recall@4": 0.9888888888888889, "last/validation/recall@8": 0.9916666666666667, "last/validation/r_precision": 0.9379770959272785, "last/validation/nmi": 0.8192827167843891, "last/validation/f1": 0.9405405405405406, "last/validation/norm_mean": 0.8435678738686774, "last/validation/norm_var": 0.031350914905207125, "last/validation/s_mu": 4.418473869397223, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.850232446754292, "last/train/norm_var": 0.07237883234293539, "best/test/map@r": 0.18266812349920866, "best/test/recall@1": 0.6372549019607843, "best/test/recall@2": 0.7955182072829131, "best/test/recall@4": 0.9159663865546218, "best/test/recall@8": 0.9663865546218487, "best/test/r_precision": 0.35059864841163546, "best/test/nmi": 0.12112355435244648, "best/test/f1": 0.32608538820032607, "best/test/norm_mean": 0.8147594333529806, "best/test/norm_var": 0.052599103889431856, "best/test/s_mu": 6.205606615350455, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.9227415820951177, "best/validation/recall@1": 0.9777777777777777, "best/validation/recall@2": 0.9861111111111112, "best/validation/recall@4": 0.9888888888888889, "best/validation/recall@8": 0.9916666666666667, "best/validation/r_precision": 0.9379770959272785, "best/validation/nmi": 0.8192827167843891, "best/validation/f1": 0.9405405405405406, "best/validation/norm_mean": 0.8435678738686774, "best/validation/norm_var": 0.031350914905207125, "best/validation/s_mu": 4.418473869397223, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.850232446754292, "best/train/norm_var": 0.07237883234293539}',9.22741582095117696127e-01,20,7.07452200000261655077e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 23.934001922607422], [2, 27.14331817626953], [3, 26.762699127197266], [4, 20.734451293945312], [5, 25.518333435058594], [6, 27.040441513061523], [7, 24.18880844116211], [8, 20.688339233398438], [9, 19.854036331176758], [10, 21.368549346923828], [11, 20.23554229736328], [12, 19.13094139099121], [13, 14.495233535766602], [14, 18.928922653198242], [15, 18.337480545043945], [16, 17.812854766845703], [17, 15.838998794555664], [18, 14.741494178771973], [19, 15.114053726196289], [20, 14.799242973327637]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.1748833730816841], [2, 1.0883368365466595], [3, 1.1579983048141003], [4, 1.1792381405830383], [5, 1.126287430524826], [6, 1.1521227434277534], [7, 1.0835244618356228], [8, 1.1659498624503613], [9, 1.1788848675787449], [10, 1.225921656936407], [11, 1.1784255243837833], [12, 1.1405047699809074], [13, 1.2252856753766537], [14, 1.1913411915302277], [15, 1.1593208871781826], [16, 1.1884496435523033], [17, 1.223612952977419], [18, 1.1574226059019566], [19, 1.156146939843893], [20, 1.1250157691538334]], "train/norm_var": [[1, 0.2676351547189689], [2, 0.26166410723135286], [3, 0.35461504933941457], [4, 0.16894361183626128], [5, 0.2788311320984418], [6, 0.1923452548607857], [7, 0.24577331923148124], [8, 0.3531721056573133], [9, 0.26431474769764374], [10, 0.19374478101309522], [11, 0.215988184368821], [12, 0.20506135085065746], [13, 0.09758106800848186], [14, 0.2833272252482102], [15, 0.24357817776968613], [16, 0.2842444640768801], [17, 0.1610582236698544], [18, 0.1586877012856542], [19, 0.254309118692319], [20, 0.2180009639355643]], "train/s_mu": [[1, 1.0395671129226685], [2, 1.0471349954605103], [3, 1.0600804090499878], [4, 1.0401450395584106], [5, 1.0739492177963257], [6, 1.068219780921936], [7, 1.0441536903381348], [8, 1.024750828742981], [9, 1.0519521236419678], [10, 1.0319912433624268], [11, 1.062333583831787], [12, 1.0646458864212036], [13, 1.0408821105957031], [14, 1.0547765493392944], [15, 1.0861515998840332], [16, 1.0308867692947388], [17, 1.0197205543518066], [18, 1.0586583614349365], [19, 1.0203901529312134], [20, 1.0494627952575684]], "train/cos_ap": [[1, 0.6354357233394682], [2, 0.7207425415480339], [3, 0.6870670409433841], [4, 0.6594767122423825], [5, 0.6186084042913903], [6, 0.6657380105498438], [7, 0.6602617089205451], [8, 0.6294334063732455], [9, 0.7515077791099655], [10, 0.7506200209900403], [11, 0.6748896206273068], [12, 0.6120526387138385], [13, 0.719072945294236], [14, 0.6859036186115861], [15, 0.6634055151288826], [16, 0.6593628713924434], [17, 0.636444038277634], [18, 0.6794967657464067], [19, 0.7404454981330041], [20, 0.7399684592910435]], "train/cos_an": [[1, 0.5218512157677173], [2, 0.5442135795714521], [3, 0.5171710492099453], [4, 0.5082649363058372], [5, 0.5414090762131125], [6, 0.5644250043272975], [7, 0.609526288054591], [8, 0.5400216558500183], [9, 0.45642437282755227], [10, 0.49977815811228693], [11, 0.4947541988816964], [12, 0.5503120425864307], [13, 0.44536999598420507], [14, 0.5076758128874169], [15, 0.5152627239421966], [16, 0.5197876934093193], [17, 0.5208564992410472], [18, 0.5262615329909075], [19, 0.5494593284688312], [20, 0.4744272056695242]], "validation/map@r": [[10, 0.8755538979397479], [20, 0.9227415820951177]], "validation/recall@1": [[10, 0.975], [20, 0.9777777777777777]]}}',NULL,NULL,'2026-11-22 06:27:50.302831','2026-11-22 06:27:51.036092',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'6a795904386d4f233096f7c85ac44a20d1655b965c5db73af9920963c1462a65',NULL,'4f6a37054738e28bef5f9160578134b9');
INSERT INTO "training" VALUES(4,'366c3fa8-3723-48d3-8fb2-ff48552340ac','8c7f1d6809d5af82f27c4d1797ed60e64700d715957e6c007d2477d1ec3fd1f6',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,205,0,'{"last/test/map@r": 0.186296280770571, "last/test/recall@1": 0.6022408963585434, "last/test/recall@2": 0.7521008403361344, "last/test/recall@4": 0.8585434173669467, "last/test/recall@8": 0.9313725490196079, "last/test/r_precision": 0.35044791246668067, "last/test/nmi": 0.13780898374492323, "last/test/f1": 0.35166944784913684, "last/test/norm_mean": 0.7054231234458315, "last/test/norm_var": 0.041208679935359, "last/test/s_mu": 6.219209491223184, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.5249938580552015, "last/validation/recall@1": 0.9611111111111111, "last/validation/recall@2": 0.9777777777777777, "last/validation/recall@4": 0.9805555555555555, "last/validation/recall@8": 0.9833333333333333, "last/validation/r_precision": 0.6066046897164042, "last/validation/nmi": 0.14866878826282928, "last/validation/f1": 0.598145285935085, "last/validation/norm_mean": 0.8485139063662953, "last/validation/norm_var": 0.08892816293415998, "last/validation/s_mu": 4.511925963136195, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.6560454467107976, "last/train/norm_var": 0.028220459201008248, "best/test/map@r": 0.19803457350762615, "best/test/recall@1": 0.5854341736694678, "best/test/recall@2": 0.7394957983193278, "best/test/recall@4": 0.8613445378151261, "best/test/recall@8": 0.9313725490196079, "best/test/r_precision": 0.3607374489596553, "best/test/nmi": 0.12126516414457807, "best/test/f1": 0.33316772804600814, "best/test/norm_mean": 0.5247313747552931, "best/test/norm_var": 0.0058997627219253435, "best/test/s_mu": 5.194845280556098, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.5885500767950997, "best/validation/recall@1": 0.9527777777777777, "best/validation/recall@2": 0.975, "best/validation/recall@4": 0.9805555555555555, "best/validation/recall@8": 0.9888888888888889, "best/validation/r_precision": 0.6512503771680661, "best/validation/nmi": 0.35994297268802417, "best/validation/f1": 0.705474622297571, "best/validation/norm_mean": 0.5735580437713199, "best/validation/norm_var": 0.00959517650035719, "best/validation/s_mu": 3.927278726042362, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.5114511652523717, "best/train/norm_var": 0.004213363137965787}',5.88550076795099741389e-01,10,8.39231154999652062542e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 33.074562072753906], [2, 28.384422302246094], [3, 26.8590030670166], [4, 26.5611515045166], [5, 26.520158767700195], [6, 24.44862937927246], [7, 21.36316680908203], [8, 25.542415618896484], [9, 17.166500091552734], [10, 21.310300827026367], [11, 15.573846817016602], [12, 17.863136291503906], [13, 20.133235931396484], [14, 18.256593704223633], [15, 21.409452438354492], [16, 14.5509614944458], [17, 18.849632263183594], [18, 21.63075828552246], [19, 14.198148727416992], [20, 19.703189849853516]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.125192392617464], [2, 1.1772194765508175], [3, 1.176851101219654], [4, 1.1366211511194706], [5, 1.2263200879096985], [6, 1.1625650227069855], [7, 1.182964876294136], [8, 1.23284200578928], [9, 1.237046517431736], [10, 1.218648687005043], [11, 1.0578484199941158], [12, 1.1846359092742205], [13, 1.2507289238274097], [14, 1.272849079221487], [15, 1.1533449664711952], [16, 1.2052565105259418], [17, 1.2347911596298218], [18, 1.20451994612813], [19, 1.2785072028636932], [20, 1.2068304009735584]], "train/norm_var": [[1, 0.19025783657565937], [2, 0.1472927234124772], [3, 0.11369215647993193], [4, 0.15050563691519828], [5, 0.13093146201957007], [6, 0.27550615094321307], [7, 0.20633924413932464], [8, 0.2572731545289718], [9, 0.14045068535553484], [10, 0.2797726906308073], [11, 0.3939683066813279], [12, 0.3328927660740661], [13, 0.30001241911363463], [14, 0.2425199997901186], [15, 0.45820087641083584], [16, 0.1508068544892383], [17, 0.321395285004189], [18, 0.20131058190157694], [19, 0.1534448789702183], [20, 0.19792250769882833]], "train/s_mu": [[1, 1.0118484497070312], [2, 1.04562246799469], [3, 1.0254943370819092], [4, 1.0614452362060547], [5, 1.0147818326950073], [6, 1.0534038543701172], [7, 1.012137770652771], [8, 1.0792111158370972], [9, 1.0743896961212158], [10, 1.0560725927352905], [11, 1.0715869665145874], [12, 1.0753782987594604], [13, 1.0441173315048218], [14, 1.078221321105957], [15, 1.065487265586853], [16, 1.0500574111938477], [17, 1.0524516105651855], [18, 1.0507441759109497], [19, 1.0186389684677124], [20, 1.0148766040802002]], "train/cos_ap": [[1, 0.652708190689227], [2, 0.562375126989573], [3, 0.6427358790903331], [4, 0.5600839117365427], [5, 0.5532322316616485], [6, 0.5219748325525096], [7, 0.6097944873368075], [8, 0.4076684341170833], [9, 0.4374385892111252], [10, 0.4670449457086925], [11, 0.6109746689394681], [12, 0.5015886483798043], [13, 0.5951454441600296], [14, 0.5309642348732255], [15, 0.5260467730468835], [16, 0.5869555045910025], [17, 0.49397467211441654], [18, 0.5951781560064974], [19, 0.5840128272040347], [20, 0.5961470231585021]], "train/cos_an": [[1, 0.5268289706183351], [2, 0.4710208558880343], [3, 0.5532646641996287], [4, 0.5390706652415692], [5, 0.5590912113664692], [6, 0.5196734852338498], [7, 0.5253199735205915], [8, 0.3948525730777665], [9, 0.5291201662200568], [10, 0.5317919412897782], [11, 0.525644455913406], [12, 0.49513959577057], [13, 0.5257981469239518], [14, 0.4896254966473272], [15, 0.4542276440565087], [16, 0.5416972499029702], [17, 0.5190098646057365], [18, 0.4854555774483285], [19, 0.5132270852017822], [20, 0.5267082053708694]], "validation/map@r": [[10, 0.5885500767950997], [20, 0.5249938580552015]], "validation/recall@1": [[10, 0.9527777777777777], [20, 0.9611111111111111]]}}',NULL,NULL,'2026-11-22 06:27:51.043371','2026-11-22 06:27:51.902885',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'8c7f1d6809d5af82f27c4d1797ed60e64700d715957e6c007d2477d1ec3fd1f6',NULL,'4f6a37054738e28bef5f9160578134b9');
INSERT INTO "training" VALUES(5,'f98bdb5e-fca0-4076-a07c-84a14b5c68f6','3fec0412afbddfd20f3d6de772e0915c3d1e40df677749387527471a0ba87d98',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 7, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.00150909, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,208,0,'{"last/test/map@r": 0.3034305886795899, "last/test/recall@1": 0.7156862745098039, "last/test/recall@2": 0.8277310924369747, "last/test/recall@4": 0.9159663865546218, "last/test/recall@8": 0.9565826330532213, "last/test/r_precision": 0.4596617132956165, "last/test/nmi": 0.24239607740716623, "last/test/f1": 0.4017071670255306, "last/test/norm_mean": 0.5388886121725168, "last/test/norm_var": 0.036291198092048615, "last/test/s_mu": 8.303052027650068, "last/test/s_mu_upper": 10.099504938362077, "last/validation/map@r": 0.8066205948542391, "last/validation/recall@1": 0.9638888888888889, "last/validation/recall@2": 0.9805555555555555, "last/validation/recall@4": 0.9805555555555555, "last/validation/recall@8": 0.9861111111111112, "last/validation/r_precision": 0.850376647834275, "last/validation/nmi": 0.7103048362208898, "last/validation/f1": 0.8948995363214838, "last/validation/norm_mean": 0.5684589189787705, "last/validation/norm_var": 0.023300488099900214, "last/validation/s_mu": 5.662420939339337, "last/validation/s_mu_upper": 7.171371656006362, "last/train/norm_mean": 0.6538242714203905, "last/train/norm_var": 0.06733043750761528, "best/test/map@r": 0.29181044197392386, "best/test/recall@1": 0.6666666666666666, "best/test/recall@2": 0.8151260504201681, "best/test/recall@4": 0.8977591036414566, "best/test/recall@8": 0.9509803921568627, "best/test/r_precision": 0.4547787014027557, "best/test/nmi": 0.279516546698124, "best/test/f1": 0.42056023409487436, "best/test/norm_mean": 0.4782203346991739, "best/test/norm_var": 0.009079773446336791, "best/test/s_mu": 7.059239206931407, "best/test/s_mu_upper": 10.099504938362077, "best/validation/map@r": 0.8347141341228016, "best/validation/recall@1": 0.9666666666666667, "best/validation/recall@2": 0.9805555555555555, "best/validation/recall@4": 0.9888888888888889, "best/validation/recall@8": 0.9888888888888889, "best/validation/r_precision": 0.8758051454394746, "best/validation/nmi": 0.7272197830648349, "best/validation/f1": 0.8951329344272407, "best/validation/norm_mean": 0.4764883422189289, "best/validation/norm_var": 0.007745074398604917, "best/validation/s_mu": 5.021181195695214, "best/validation/s_mu_upper": 7.171371656006362, "best/train/norm_mean": 0.5162351220887397, "best/train/norm_var": 0.013481047076942754}',8.34714134122801598714e-01,10,8.99220090999733656644e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.7425100803375244], [2, 0.505240797996521], [3, 0.4855797588825226], [4, 0.5786074995994568], [5, 0.5189163088798523], [6, 0.6873362064361572], [7, 0.6626064777374268], [8, 0.6740357875823975], [9, 0.4192391633987427], [10, 0.531176745891571], [11, 0.2421523481607437], [12, 0.6420984268188477], [13, 0.41303887963294983], [14, 0.3419990837574005], [15, 0.45534414052963257], [16, 0.4019840657711029], [17, 0.620617687702179], [18, 0.4563174843788147], [19, 0.17933891713619232], [20, 0.17197610437870026]], "train/lr": [[1, 0.00150909], [2, 0.00150909], [3, 0.00150909], [4, 0.00150909], [5, 0.00150909], [6, 0.00150909], [7, 0.00150909], [8, 0.00150909], [9, 0.00150909], [10, 0.00150909], [11, 0.00150909], [12, 0.00150909], [13, 0.00150909], [14, 0.00150909], [15, 0.00150909], [16, 0.00150909], [17, 0.00150909], [18, 0.00150909], [19, 0.00150909], [20, 0.00150909]], "train/norm_mean": [[1, 0.9520783610641956], [2, 0.9057737030088902], [3, 0.978484908118844], [4, 0.8897256478667259], [5, 0.922902949154377], [6, 0.8784218300133944], [7, 0.861160246655345], [8, 0.9208150319755077], [9, 0.9480987936258316], [10, 1.0307961404323578], [11, 0.9764283820986748], [12, 0.897399602457881], [13, 1.0145279057323933], [14, 0.9629259966313839], [15, 0.926372954621911], [16, 0.9529395792633295], [17, 0.9858724623918533], [18, 0.9473029226064682], [19, 0.9768144935369492], [20, 0.9780552592128515]], "train/norm_var": [[1, 0.18563898079683339], [2, 0.1028191554194475], [3, 0.1708500551519153], [4, 0.11132401431692909], [5, 0.14439159222042933], [6, 0.15205339175289492], [7, 0.11839309489281331], [8, 0.2166253100095519], [9, 0.22777488286768982], [10, 0.10743369256163593], [11, 0.1596439735939662], [12, 0.14629444369288863], [13, 0.06136387088560378], [14, 0.19181911490870174], [15, 0.14269988637817962], [16, 0.19911519164651897], [17, 0.11555568961754203], [18, 0.1477579640308655], [19, 0.1577590495746632], [20, 0.1653297908078884]], "train/s_mu": [[1, 1.260433316230774], [2, 1.2578365802764893], [3, 1.2595350742340088], [4, 1.2576369047164917], [5, 1.2825013399124146], [6, 1.3369970321655273], [7, 1.2855347394943237], [8, 1.2757809162139893], [9, 1.2311969995498657], [10, 1.2097898721694946], [11, 1.2504743337631226], [12, 1.2988518476486206], [13, 1.205344557762146], [14, 1.2214380502700806], [15, 1.2459763288497925], [16, 1.2371751070022583], [17, 1.2234350442886353], [18, 1.263806700706482], [19, 1.2073413133621216], [20, 1.1947252750396729]], "train/cos_ap": [[1, 0.466312981106267], [2, 0.6353872366327216], [3, 0.6099459041393004], [4, 0.5893842962057589], [5, 0.6250033483185843], [6, 0.4712488743625242], [7, 0.5502579593883935], [8, 0.5229424260038229], [9, 0.6894125772523112], [10, 0.6174671459942399], [11, 0.7637214615699874], [12, 0.5089481646108541], [13, 0.688257204693393], [14, 0.7300889170878943], [15, 0.6844489725434665], [16, 0.6841080437589584], [17, 0.5551031363400244], [18, 0.6431433593419421], [19, 0.8361292142933557], [20, 0.8452626167898739]], "train/cos_an": [[1, 0.2122487125176097], [2, 0.24081205787636972], [3, 0.15326707903324174], [4, 0.2245930658665748], [5, 0.20880118278189783], [6, 0.2096740791696978], [7, 0.2900876714840606], [8, 0.25202362050048843], [9, 0.19154211341805358], [10, 0.1648936835927107], [11, 0.12012707018283264], [12, 0.22404929077164168], [13, 0.11388205793129418], [14, 0.10410597786717601], [15, 0.18500889902628345], [16, 0.10802693992987522], [17, 0.17099450925401957], [18, 0.12763731911927115], [19, 0.08073196777999188], [20, 0.12300004006402403]], "validation/map@r": [[10, 0.8347141341228016], [20, 0.8066205948542391]], "validation/recall@1": [[10, 0.9666666666666667], [20, 0.9638888888888889]]}}',NULL,NULL,'2026-11-22 06:27:52.021760','2026-11-22 06:27:52.932558',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'3fec0412afbddfd20f3d6de772e0915c3d1e40df677749387527471a0ba87d98',NULL,'ac1f79714f388c1844df794beea326ca');
INSERT INTO "training" VALUES(6,'d32103c7-1366-4071-bf4f-94d43ec69f61','720cad33b0c538c6be3410f9d8fa9af9869e282fbcb6f6e2377952303afe8a4f',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 7, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.00304752, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'720cad33b0c538c6be3410f9d8fa9af9869e282fbcb6f6e2377952303afe8a4f',NULL,NULL);
INSERT INTO "training" VALUES(7,'6b531c10-3e91-417b-b481-630abd4ef95e','bd3f34194b7223cb3c7bb4edfe5c5483a437449482413e102031b71171f48eba',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 10, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,208,0,'{"last/test/map@r": 0.3143367236029159, "last/test/recall@1": 0.6946778711484594, "last/test/recall@2": 0.8067226890756303, "last/test/recall@4": 0.8893557422969187, "last/test/recall@8": 0.9439775910364145, "last/test/r_precision": 0.45351893827721745, "last/test/nmi": 0.21978634197340668, "last/test/f1": 0.37856791155011116, "last/test/norm_mean": 0.5760618200739559, "last/test/norm_var": 0.018163609770083963, "last/test/s_mu": 6.985960837573796, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.39970323825727483, "last/validation/recall@1": 0.8805555555555555, "last/validation/recall@2": 0.9361111111111111, "last/validation/recall@4": 0.9666666666666667, "last/validation/recall@8": 0.9888888888888889, "last/validation/r_precision": 0.5596691152244107, "last/validation/nmi": 0.008760901116862192, "last/validation/f1": 0.528317997791682, "last/validation/norm_mean": 0.5451305504474375, "last/validation/norm_var": 0.022659587525192666, "last/validation/s_mu": 4.6683537378590865, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.6279244611289656, "last/train/norm_var": 0.043883194724998166, "best/test/map@r": 0.3143367236029159, "best/test/recall@1": 0.6946778711484594, "best/test/recall@2": 0.8067226890756303, "best/test/recall@4": 0.8893557422969187, "best/test/recall@8": 0.9439775910364145, "best/test/r_precision": 0.45351893827721745, "best/test/nmi": 0.21978634197340668, "best/test/f1": 0.37856791155011116, "best/test/norm_mean": 0.5760618200739559, "best/test/norm_var": 0.018163609770083963, "best/test/s_mu": 6.985960837573796, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.39970323825727483, "best/validation/recall@1": 0.8805555555555555, "best/validation/recall@2": 0.9361111111111111, "best/validation/recall@4": 0.9666666666666667, "best/validation/recall@8": 0.9888888888888889, "best/validation/r_precision": 0.5596691152244107, "best/validation/nmi": 0.008760901116862192, "best/validation/f1": 0.528317997791682, "best/validation/norm_mean": 0.5451305504474375, "best/validation/norm_var": 0.022659587525192666, "best/validation/s_mu": 4.6683537378590865, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.6279244611289656, "best/train/norm_var": 0.043883194724998166}',3.99703238257274828804e-01,20,5.49850220000735134817e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux", "git_commit": "3d33c10e1ecff456bd1e4f6afc155d7215ac05de", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.6284589767456055], [2, 1.0144604444503784], [3, 0.795922040939331], [4, 0.8189756870269775], [5, 0.9825161695480347], [6, 0.8632298111915588], [7, 0.8118047714233398], [8, 0.9233413338661194], [9, 0.7556405067443848], [10, 0.7087092399597168], [11, 0.7541330456733704], [12, 1.002304196357727], [13, 1.0844831466674805], [14, 0.7418867945671082], [15, 0.8717091679573059], [16, 0.7154249548912048], [17, 1.062752604484558], [18, 0.79310142993927], [19, 0.9041697978973389], [20, 0.813861608505249]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.1562631167471409], [2, 1.1349082235246897], [3, 1.1699769850820303], [4, 1.135715702548623], [5, 1.1641378421336412], [6, 1.1575678512454033], [7, 1.2130249571055174], [8, 1.169313883408904], [9, 1.171436671167612], [10, 1.2106997426599264], [11, 1.1376594137400389], [12, 1.1305266208946705], [13, 1.025862792506814], [14, 1.1863313131034374], [15, 1.1939136274158955], [16, 1.162445768713951], [17, 1.17393409460783], [18, 1.1574602089822292], [19, 1.20590041577816], [20, 1.1680115386843681]], "train/norm_var": [[1, 0.1558928117152518], [2, 0.40280234399141623], [3, 0.2513773146613338], [4, 0.5553608213351964], [5, 0.4595615758956056], [6, 0.42571170175449413], [7, 0.3664641886141639], [8, 0.4089350667722347], [9, 0.3197715591417471], [10, 0.26225149584315016], [11, 0.4771678605130555], [12, 0.5017125780076762], [13, 0.5056411022253886], [14, 0.2356878865489536], [15, 0.201476505940383], [16, 0.26983687622924096], [17, 0.5086758803249619], [18, 0.2779105776387192], [19, 0.3953037686886387], [20, 0.4952725808855786]], "train/s_mu": [[1, 1.1355904340744019], [2, 1.1633566617965698], [3, 1.123030424118042], [4, 1.1829617023468018], [5, 1.1879498958587646], [6, 1.1846331357955933], [7, 1.2041429281234741], [8, 1.213559865951538], [9, 1.182368278503418], [10, 1.1466206312179565], [11, 1.1895021200180054], [12, 1.175630807876587], [13, 1.1350561380386353], [14, 1.1664892435073853], [15, 1.184862732887268], [16, 1.1841199398040771], [17, 1.1637167930603027], [18, 1.169040560722351], [19, 1.1871228218078613], [20, 1.155726671218872]], "train/cos_ap": [[1, 0.5974854705844426], [2, 0.3918832360731441], [3, 0.5509023430543467], [4, 0.46862672178220444], [5, 0.3846348763979946], [6, 0.4582398277262687], [7, 0.4331949400591956], [8, 0.3783486693292937], [9, 0.4958041820978191], [10, 0.5457133923539685], [11, 0.522313972339671], [12, 0.41025955496076866], [13, 0.4439889202230269], [14, 0.5105002725096087], [15, 0.45780551834232464], [16, 0.5130053908401806], [17, 0.38348991684544803], [18, 0.5113970964354747], [19, 0.44596694451819247], [20, 0.5093397192749879]], "train/cos_an": [[1, 0.3270834928883059], [2, 0.3557736217244121], [3, 0.3615735597774659], [4, 0.31876089470205], [5, 0.3452441187956694], [6, 0.3512992438759121], [7, 0.26826844377057885], [8, 0.2926978144614239], [9, 0.30994339251254216], [10, 0.29136865283990604], [11, 0.3262358822221576], [12, 0.37723536965090343], [13, 0.45777778025435145], [14, 0.3014501470394561], [15, 0.35039708486708837], [16, 0.32727518941951844], [17, 0.3786699948789021], [18, 0.3717558292209482], [19, 0.3325904460765134], [20, 0.35726324901303097]], "validation/map@r": [[10, 0.36533005740819646], [20, 0.39970323825727483]], "validation/recall@1": [[10, 0.825], [20, 0.8805555555555555]]}}',NULL,NULL,'2026-11-22 06:27:52.982191','2026-11-22 06:27:53.548610',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'bd3f34194b7223cb3c7bb4edfe5c5483a437449482413e102031b71171f48eba',NULL,'4f6a37054738e28bef5f9160578134b9');
INSERT INTO "training" VALUES(8,'fbe005f9-c864-4c01-90f3-7e26f20402e5','1ac163927201ff6a03412323feb7f5fafeee3e57533e99023e8d00396e26d645',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 11, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','failed',10,20,102,0,NULL,NULL,NULL,NULL,NULL,'RuntimeError: no luck','Traceback','2026-11-22 06:27:53.551518','2026-11-22 06:27:53.783038',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'1ac163927201ff6a03412323feb7f5fafeee3e57533e99023e8d00396e26d645',NULL,NULL);
INSERT INTO "training" VALUES(9,'8ff68fe0-86a1-4bf8-9687-15bff278f668','3b829c61f4c0bf1f9db2493deca370281cad5b609c0c3109532dd7dd8ab07e40',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 20, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','running',10,20,101,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 06:27:53.830068',NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'3b829c61f4c0bf1f9db2493deca370281cad5b609c0c3109532dd7dd8ab07e40',NULL,NULL);
INSERT INTO "training" VALUES(10,'f92b4c6b-f18b-4977-8ad6-7cde4661cbc3','76701764456e2c12d92f175e0be17476186bd193fcdfedba8b4073e7c17cae89',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 21, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',10,20,102,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 06:27:54.056757',NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'76701764456e2c12d92f175e0be17476186bd193fcdfedba8b4073e7c17cae89',NULL,NULL);
INSERT INTO "training" VALUES(11,'269b9cef-0c9a-4f9a-959b-c1131a0265e9','03158dcfffa66326eaf5310edba138847ff74fce59ca0de765d776f7ad3e6aa2',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 22, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'03158dcfffa66326eaf5310edba138847ff74fce59ca0de765d776f7ad3e6aa2',NULL,NULL);
INSERT INTO "training" VALUES(12,'fed925ad-cec6-4d8b-989e-301b055508fa','52685072f21c009461fd81b6aeef5c58983f90b72f75553eef252c874c650a8f',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 20, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'52685072f21c009461fd81b6aeef5c58983f90b72f75553eef252c874c650a8f',NULL,NULL);
INSERT INTO "training" VALUES(13,'adaebbf9-11d1-4a86-9278-c00a5dc34f40','193ded45c0c0e6ae5950a54c64c3ff169f0801a197de8c8bbd5afe87ecc09ac0',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 21, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'193ded45c0c0e6ae5950a54c64c3ff169f0801a197de8c8bbd5afe87ecc09ac0',NULL,NULL);
INSERT INTO "training" VALUES(14,'4cdbb001-b7e9-4b18-9d27-fdded29390fd','d5593580fcd19dd90fae058a170594120d64755182dd65e2ee6cd55816400fb5',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 22, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'d5593580fcd19dd90fae058a170594120d64755182dd65e2ee6cd55816400fb5',NULL,NULL);
INSERT INTO "training" VALUES(15,'7a0c1adf-cd09-4155-99f9-74ffb2ba6962','8e3a2de85f93c3e4c2dbd082e87b318d75e5d70a585383d4fd7d97eef226069c',2,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'8e3a2de85f93c3e4c2dbd082e87b318d75e5d70a585383d4fd7d97eef226069c',NULL,NULL);
INSERT INTO "training" VALUES(16,'c8c1b06d-c121-4482-9b75-56616d96e938','76701764456e2c12d92f175e0be17476186bd193fcdfedba8b4073e7c17cae89',2,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 8, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 10, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 21, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL,'76701764456e2c12d92f175e0be17476186bd193fcdfedba8b4073e7c17cae89',NULL,NULL);
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
INSERT INTO "trial" VALUES(1,'8dd838f4-9548-5dde-be1d-0b3262f945fd',1,0,0,0,0,'{"seed": "0"}',1,'finished',0,0,'2026-11-22 06:27:45.840574','2026-11-22 06:27:49.734277',NULL,0,NULL,NULL,NULL,NULL,8.58429042721813417848e-01,6.42977186000280198641e-01,'triplet','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.0,3.6839854922890924449e-01,2.23735733648718460031e-01,1.97301413774329359451e-01,7.26840961380165184735e-01,2.03263627025381844737e-02,3.94935760953912695647e-01,6.49859943977591059116e-01,7.85714285714285698425e-01,9.00560224089635874555e-01,9.56582633053221331742e-01,5.25661678023191,9.447221813845592564e+00,9.05064462402072611446e-01,8.58429042721813417848e-01,7.60856510029660704219e-01,6.79074502322408846133e-01,1.3292337383319368857e-02,8.8998397686008878793e-01,9.61111111111111138249e-01,9.88888888888888928363e-01,9.88888888888888928363e-01,9.88888888888888928363e-01,3.88539148556586066973e+00,6.70820393249936941515e+00,3.6422157966823925923e-01,2.27949222890111408146e-01,1.88334909470724148894e-01,7.90183627012730926963e-01,6.29310236015828416977e-02,3.90898246594231224548e-01,6.42857142857142904723e-01,7.85714285714285698425e-01,8.87955182072829085626e-01,9.56582633053221331742e-01,6.36015347006015296926e+00,9.447221813845592564e+00,8.99911945993542738975e-01,8.50977197283351083356e-01,7.2703896055894079442e-01,7.64153988079892210194e-01,2.58130507799750816277e-02,8.84005819659907099428e-01,9.61111111111111138249e-01,0.975,9.83333333333333281522e-01,9.88888888888888928363e-01,4.50937560496275580135e+00,6.70820393249936941515e+00,7.31324215317827652782e-01,2.86213557548987036771e-02,8.19733562682179450753e-01,9.27956729631959215121e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(2,'9d130204-17f2-5226-a86e-1a0e68292d72',1,0,0,1,1,'{"seed": "1"}',2,'finished',0,0,'2026-11-22 06:27:49.738373','2026-11-22 06:27:50.298637',NULL,0,NULL,NULL,NULL,NULL,6.23498819628521161462e-01,5.3451321700049447827e-01,'triplet','1',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,3.41825179483383922995e-01,2.16193468066621485856e-01,1.40280331833717103462e-01,5.20345150798308786477e-01,0.00613133312218675,3.83047341413285058475e-01,5.46218487394957930014e-01,7.05882352941176516303e-01,8.44537815126050417369e-01,9.29971988795518234027e-01,5.17181587688300936633e+00,9.447221813845592564e+00,7.16735851565154402642e-01,6.23498819628521161462e-01,4.12734892779648809835e-01,0.559895413617293,9.51459167323385861247e-03,6.7571341122937711443e-01,9.38888888888888883954e-01,9.72222222222222209886e-01,9.91666666666666696272e-01,9.91666666666666696272e-01,3.96755070523653285974e+00,6.70820393249936941515e+00,3.70505096979195147621e-01,2.36125080628172390184e-01,1.91782838272288924663e-01,6.71767591094436400389e-01,3.34174996908298688191e-02,4.02574721680994396244e-01,6.10644257703081283494e-01,7.68907563025210127882e-01,8.58543417366946726154e-01,9.34173669467787126663e-01,6.22051598979011544088e+00,9.447221813845592564e+00,7.29567307692307709388e-01,0.60987704522818,4.13599664392934884826e-01,7.95577225916915486969e-01,6.73130706228140668345e-02,0.675480954313242,9.44444444444444419772e-01,0.975,9.86111111111111160454e-01,9.91666666666666696272e-01,4.57778112511133628004e+00,6.70820393249936941515e+00,5.13142131011350866032e-01,4.93390909759209433937e-03,6.9830337900508654414e-01,2.72347099902013507766e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(3,'7aebb68a-6452-5b1c-a6ab-d5f929c0a8a7',1,1,0,0,2,'{"seed": "0"}',3,'finished',0,0,'2026-11-22 06:27:50.302831','2026-11-22 06:27:51.036092',NULL,0,NULL,NULL,NULL,NULL,9.22741582095117696127e-01,7.07452200000261655077e-01,'normface','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.0,3.26085388200326065089e-01,1.82668123499208662208e-01,1.21123554352446483051e-01,8.14759433352980622089e-01,5.25991038894318557739e-02,3.50598648411635460675e-01,6.37254901960784270187e-01,7.95518207282913114575e-01,9.15966386554621814219e-01,9.66386554621848747892e-01,6.20560661535045543502e+00,9.447221813845592564e+00,9.40540540540540592751e-01,9.22741582095117696127e-01,8.1928271678438913117e-01,8.43567873868677375881e-01,3.1350914905207125094e-02,9.37977095927278514686e-01,9.77777777777777745704e-01,9.86111111111111160454e-01,9.88888888888888928363e-01,9.91666666666666696272e-01,4.41847386939722319709e+00,6.70820393249936941515e+00,3.26085388200326065089e-01,1.82668123499208662208e-01,1.21123554352446483051e-01,8.14759433352980622089e-01,5.25991038894318557739e-02,3.50598648411635460675e-01,6.37254901960784270187e-01,7.95518207282913114575e-01,9.15966386554621814219e-01,9.66386554621848747892e-01,6.20560661535045543502e+00,9.447221813845592564e+00,9.40540540540540592751e-01,9.22741582095117696127e-01,8.1928271678438913117e-01,8.43567873868677375881e-01,3.1350914905207125094e-02,9.37977095927278514686e-01,9.77777777777777745704e-01,9.86111111111111160454e-01,9.88888888888888928363e-01,9.91666666666666696272e-01,4.41847386939722319709e+00,6.70820393249936941515e+00,0.850232446754292,7.23788323429353924742e-02,0.850232446754292,7.23788323429353924742e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(4,'fb4c7702-8561-5b94-8e35-85528a7ac14f',1,1,0,1,3,'{"seed": "1"}',4,'finished',0,0,'2026-11-22 06:27:51.043371','2026-11-22 06:27:51.902885',NULL,0,NULL,NULL,NULL,NULL,5.88550076795099741389e-01,8.39231154999652062542e-01,'normface','1',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,3.33167728046008138065e-01,1.98034573507626154853e-01,1.21265164144578066474e-01,5.24731374755293078493e-01,5.89976272192534352545e-03,3.60737448959655315761e-01,5.85434173669467816658e-01,7.3949579831932776841e-01,8.61344537815126098934e-01,9.31372549019607864906e-01,5.19484528055609828811e+00,9.447221813845592564e+00,0.705474622297571,5.88550076795099741389e-01,3.59942972688024165339e-01,5.73558043771319914228e-01,0.00959517650035719,6.51250377168066107991e-01,9.527777777777777235e-01,0.975,9.80555555555555513613e-01,9.88888888888888928363e-01,3.92727872604236205589e+00,6.70820393249936941515e+00,3.516694478491368403e-01,0.186296280770571,1.37808983744923230219e-01,7.05423123445831468103e-01,0.041208679935359,3.50447912466680666643e-01,6.02240896358543387201e-01,7.52100840336134446317e-01,8.58543417366946726154e-01,9.31372549019607864906e-01,6.21920949122318411639e+00,9.447221813845592564e+00,0.598145285935085,5.24993858055201489953e-01,1.48668788262829282276e-01,8.48513906366295311833e-01,8.8928162934159976638e-02,6.06604689716404243959e-01,9.61111111111111138249e-01,9.77777777777777745704e-01,9.80555555555555513613e-01,9.83333333333333281522e-01,4.51192596313619542769e+00,6.70820393249936941515e+00,5.11451165252371664493e-01,4.21336313796578671581e-03,6.56045446710797564016e-01,2.82204592010082480624e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(5,'ad500dfa-0996-59ef-94de-5b5cf1ea5ea6',2,0,0,0,0,'{}',5,'finished',0,0,'2026-11-22 06:27:52.021760','2026-11-22 06:27:52.932558',NULL,0,NULL,NULL,NULL,NULL,8.34714134122801598714e-01,8.99220090999733656644e-01,'0.00150909',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.00150909,4.20560234094874363375e-01,2.91810441973923861969e-01,0.279516546698124,4.78220334699173910131e-01,9.07977344633679149532e-03,4.5477870140275572508e-01,6.66666666666666629659e-01,8.15126050420168057897e-01,8.97759103641456612798e-01,9.50980392156862697206e-01,7.05923920693140694027e+00,1.0099504938362077411e+01,8.95132934427240734009e-01,8.34714134122801598714e-01,7.27219783064834923713e-01,4.76488342218928884186e-01,7.74507439860491666422e-03,8.75805145439474630464e-01,9.66666666666666674068e-01,9.80555555555555513613e-01,9.88888888888888928363e-01,9.88888888888888928363e-01,5.02118119569521415002e+00,7.17137165600636183881e+00,4.01707167025530609283e-01,3.03430588679589885447e-01,2.42396077407166232742e-01,5.38888612172516823228e-01,3.62911980920486154644e-02,4.59661713295616503049e-01,7.15686274509803932453e-01,8.27731092436974735804e-01,9.15966386554621814219e-01,9.56582633053221331742e-01,8.30305202765006811205e+00,1.0099504938362077411e+01,8.94899536321483779488e-01,8.06620594854239092441e-01,7.10304836220889801445e-01,5.68458918978770544327e-01,2.33004880999002142449e-02,0.850376647834275,9.63888888888888906159e-01,9.80555555555555513613e-01,9.80555555555555513613e-01,9.86111111111111160454e-01,5.66242093933933698934e+00,7.17137165600636183881e+00,5.16235122088739672996e-01,1.34810470769427537263e-02,6.53824271420390457087e-01,6.7330437507615276127e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(6,'0ca1dd80-0963-5618-8096-39a4d206a5fe',2,0,1,0,1,'{}',6,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'0.00304752',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.00304752,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(7,'9af0e802-49ad-5f63-a499-74fc384f7d89',3,0,0,0,0,'{"seed": "10"}',7,'finished',0,0,'2026-11-22 06:27:52.982191','2026-11-22 06:27:53.548610',NULL,0,NULL,NULL,NULL,NULL,3.99703238257274828804e-01,5.49850220000735134817e-01,'10',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,10.0,3.78567911550111158014e-01,3.14336723602915923958e-01,2.19786341973406684768e-01,5.76061820073955899168e-01,1.81636097700839625745e-02,4.5351893827721745378e-01,6.94677871148459358252e-01,8.06722689075630272625e-01,8.89355742296918716505e-01,9.43977591036414542813e-01,6.98596083757379560097e+00,9.447221813845592564e+00,0.528317997791682,3.99703238257274828804e-01,8.76090111686219155662e-03,5.45130550447437522976e-01,2.26595875251926655302e-02,5.59669115224410651521e-01,8.80555555555555535818e-01,9.36111111111111116045e-01,9.66666666666666674068e-01,9.88888888888888928363e-01,4.66835373785908647192e+00,6.70820393249936941515e+00,3.78567911550111158014e-01,3.14336723602915923958e-01,2.19786341973406684768e-01,5.76061820073955899168e-01,1.81636097700839625745e-02,4.5351893827721745378e-01,6.94677871148459358252e-01,8.06722689075630272625e-01,8.89355742296918716505e-01,9.43977591036414542813e-01,6.98596083757379560097e+00,9.447221813845592564e+00,0.528317997791682,3.99703238257274828804e-01,8.76090111686219155662e-03,5.45130550447437522976e-01,2.26595875251926655302e-02,5.59669115224410651521e-01,8.80555555555555535818e-01,9.36111111111111116045e-01,9.66666666666666674068e-01,9.88888888888888928363e-01,4.66835373785908647192e+00,6.70820393249936941515e+00,6.27924461128965605283e-01,4.38831947249981660363e-02,6.27924461128965605283e-01,4.38831947249981660363e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(8,'bb39d92f-b501-52b3-8c05-3d7174d0cd25',3,0,0,1,1,'{"seed": "11"}',8,'failed',0,0,'2026-11-22 06:27:53.551518','2026-11-22 06:27:53.783038',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'11',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,11.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(9,'6a0c1acc-ef23-5e85-88f0-02fa9add719e',4,0,0,0,0,'{"seed": "0"}',1,'finished',1,0,'2026-11-22 06:27:53.823521','2026-11-22 06:27:53.823521',NULL,0,NULL,NULL,NULL,NULL,8.58429042721813417848e-01,6.42977186000280198641e-01,'triplet','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.0,3.6839854922890924449e-01,2.23735733648718460031e-01,1.97301413774329359451e-01,7.26840961380165184735e-01,2.03263627025381844737e-02,3.94935760953912695647e-01,6.49859943977591059116e-01,7.85714285714285698425e-01,9.00560224089635874555e-01,9.56582633053221331742e-01,5.25661678023191,9.447221813845592564e+00,9.05064462402072611446e-01,8.58429042721813417848e-01,7.60856510029660704219e-01,6.79074502322408846133e-01,1.3292337383319368857e-02,8.8998397686008878793e-01,9.61111111111111138249e-01,9.88888888888888928363e-01,9.88888888888888928363e-01,9.88888888888888928363e-01,3.88539148556586066973e+00,6.70820393249936941515e+00,3.6422157966823925923e-01,2.27949222890111408146e-01,1.88334909470724148894e-01,7.90183627012730926963e-01,6.29310236015828416977e-02,3.90898246594231224548e-01,6.42857142857142904723e-01,7.85714285714285698425e-01,8.87955182072829085626e-01,9.56582633053221331742e-01,6.36015347006015296926e+00,9.447221813845592564e+00,8.99911945993542738975e-01,8.50977197283351083356e-01,7.2703896055894079442e-01,7.64153988079892210194e-01,2.58130507799750816277e-02,8.84005819659907099428e-01,9.61111111111111138249e-01,0.975,9.83333333333333281522e-01,9.88888888888888928363e-01,4.50937560496275580135e+00,6.70820393249936941515e+00,7.31324215317827652782e-01,2.86213557548987036771e-02,8.19733562682179450753e-01,9.27956729631959215121e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(10,'7a9b6970-47b7-5e7c-a68d-04531e10dcea',4,0,0,1,1,'{"seed": "20"}',9,'running',0,0,'2026-11-22 06:27:53.830068',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'triplet','20',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,20.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(11,'f40bb7db-79a1-5cd3-b479-6cf0853bcef0',4,0,0,2,2,'{"seed": "21"}',10,'waiting',0,0,'2026-11-22 06:27:54.056757',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'triplet','21',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,21.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(12,'1ec2c34c-e186-5276-8e54-002e3f0e4f05',4,0,0,3,3,'{"seed": "22"}',11,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'triplet','22',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,22.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(13,'69e4bd00-f6e8-5729-bece-752da83b20af',4,1,0,0,4,'{"seed": "0"}',3,'finished',1,0,'2026-11-22 06:27:53.823521','2026-11-22 06:27:53.823521',NULL,0,NULL,NULL,NULL,NULL,9.22741582095117696127e-01,7.07452200000261655077e-01,'normface','0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.0,3.26085388200326065089e-01,1.82668123499208662208e-01,1.21123554352446483051e-01,8.14759433352980622089e-01,5.25991038894318557739e-02,3.50598648411635460675e-01,6.37254901960784270187e-01,7.95518207282913114575e-01,9.15966386554621814219e-01,9.66386554621848747892e-01,6.20560661535045543502e+00,9.447221813845592564e+00,9.40540540540540592751e-01,9.22741582095117696127e-01,8.1928271678438913117e-01,8.43567873868677375881e-01,3.1350914905207125094e-02,9.37977095927278514686e-01,9.77777777777777745704e-01,9.86111111111111160454e-01,9.88888888888888928363e-01,9.91666666666666696272e-01,4.41847386939722319709e+00,6.70820393249936941515e+00,3.26085388200326065089e-01,1.82668123499208662208e-01,1.21123554352446483051e-01,8.14759433352980622089e-01,5.25991038894318557739e-02,3.50598648411635460675e-01,6.37254901960784270187e-01,7.95518207282913114575e-01,9.15966386554621814219e-01,9.66386554621848747892e-01,6.20560661535045543502e+00,9.447221813845592564e+00,9.40540540540540592751e-01,9.22741582095117696127e-01,8.1928271678438913117e-01,8.43567873868677375881e-01,3.1350914905207125094e-02,9.37977095927278514686e-01,9.77777777777777745704e-01,9.86111111111111160454e-01,9.88888888888888928363e-01,9.91666666666666696272e-01,4.41847386939722319709e+00,6.70820393249936941515e+00,0.850232446754292,7.23788323429353924742e-02,0.850232446754292,7.23788323429353924742e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(14,'a045f1b8-1cea-542d-8a06-dd32857d1164',4,1,0,1,5,'{"seed": "20"}',12,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'normface','20',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,20.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(15,'d34ea95c-3ff4-5ebb-817a-4138c00b43f8',4,1,0,2,6,'{"seed": "21"}',13,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'normface','21',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,21.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(16,'ea1796a9-b2bc-556a-8fc7-5a4fd7e18da6',4,1,0,3,7,'{"seed": "22"}',14,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'normface','22',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,22.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(17,'488d2d8a-6f18-5961-8ce2-9551a48a32a3',5,0,0,0,0,'{"seed": "21"}',10,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'21',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,21.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(18,'9c026d7f-26c4-5920-b474-207d92fb4195',5,0,0,1,1,'{"seed": "22"}',11,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'22',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,22.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(19,'17219448-2c07-595a-8e87-b599ea8e3ec3',6,0,0,0,0,'{"seed": "0"}',15,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'0',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(20,'873bb0c3-118c-546a-8c5f-6e2f5bc5f99e',6,0,0,1,1,'{"seed": "21"}',16,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'21',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,21.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "trial_column" VALUES(1,'seed','repeat',1,0);
INSERT INTO "trial_column" VALUES(1,'best/test/f1','metric',NULL,1);
INSERT INTO "trial_column" VALUES(1,'best/test/map@r','metric',NULL,2);
INSERT INTO "trial_column" VALUES(1,'best/test/nmi','metric',NULL,3);
INSERT INTO "trial_column" VALUES(1,'best/test/norm_mean','metric',NULL,4);
INSERT INTO "trial_column" VALUES(1,'best/test/norm_var','metric',NULL,5);
INSERT INTO "trial_column" VALUES(1,'best/test/r_precision','metric',NULL,6);
INSERT INTO "trial_column" VALUES(1,'best/test/recall@1','metric',NULL,7);
INSERT INTO "trial_column" VALUES(1,'best/test/recall@2','metric',NULL,8);
INSERT INTO "trial_column" VALUES(1,'best/test/recall@4','metric',NULL,9);
INSERT INTO "trial_column" VALUES(1,'best/test/recall@8','metric',NULL,10);
INSERT INTO "trial_column" VALUES(1,'best/test/s_mu','metric',NULL,11);
INSERT INTO "trial_column" VALUES(1,'best/test/s_mu_upper','metric',NULL,12);
INSERT INTO "trial_column" VALUES(1,'best/validation/f1','metric',NULL,13);
INSERT INTO "trial_column" VALUES(1,'best/validation/map@r','metric',NULL,14);
INSERT INTO "trial_column" VALUES(1,'best/validation/nmi','metric',NULL,15);
INSERT INTO "trial_column" VALUES(1,'best/validation/norm_mean','metric',NULL,16);
INSERT INTO "trial_column" VALUES(1,'best/validation/norm_var','metric',NULL,17);
INSERT INTO "trial_column" VALUES(1,'best/validation/r_precision','metric',NULL,18);
INSERT INTO "trial_column" VALUES(1,'best/validation/recall@1','metric',NULL,19);
INSERT INTO "trial_column" VALUES(1,'best/validation/recall@2','metric',NULL,20);
INSERT INTO "trial_column" VALUES(1,'best/validation/recall@4','metric',NULL,21);
INSERT INTO "trial_column" VALUES(1,'best/validation/recall@8','metric',NULL,22);
INSERT INTO "trial_column" VALUES(1,'best/validation/s_mu','metric',NULL,23);
INSERT INTO "trial_column" VALUES(1,'best/validation/s_mu_upper','metric',NULL,24);
INSERT INTO "trial_column" VALUES(1,'last/test/f1','metric',NULL,25);
INSERT INTO "trial_column" VALUES(1,'last/test/map@r','metric',NULL,26);
INSERT INTO "trial_column" VALUES(1,'last/test/nmi','metric',NULL,27);
INSERT INTO "trial_column" VALUES(1,'last/test/norm_mean','metric',NULL,28);
INSERT INTO "trial_column" VALUES(1,'last/test/norm_var','metric',NULL,29);
INSERT INTO "trial_column" VALUES(1,'last/test/r_precision','metric',NULL,30);
INSERT INTO "trial_column" VALUES(1,'last/test/recall@1','metric',NULL,31);
INSERT INTO "trial_column" VALUES(1,'last/test/recall@2','metric',NULL,32);
INSERT INTO "trial_column" VALUES(1,'last/test/recall@4','metric',NULL,33);
INSERT INTO "trial_column" VALUES(1,'last/test/recall@8','metric',NULL,34);
INSERT INTO "trial_column" VALUES(1,'last/test/s_mu','metric',NULL,35);
INSERT INTO "trial_column" VALUES(1,'last/test/s_mu_upper','metric',NULL,36);
INSERT INTO "trial_column" VALUES(1,'last/validation/f1','metric',NULL,37);
INSERT INTO "trial_column" VALUES(1,'last/validation/map@r','metric',NULL,38);
INSERT INTO "trial_column" VALUES(1,'last/validation/nmi','metric',NULL,39);
INSERT INTO "trial_column" VALUES(1,'last/validation/norm_mean','metric',NULL,40);
INSERT INTO "trial_column" VALUES(1,'last/validation/norm_var','metric',NULL,41);
INSERT INTO "trial_column" VALUES(1,'last/validation/r_precision','metric',NULL,42);
INSERT INTO "trial_column" VALUES(1,'last/validation/recall@1','metric',NULL,43);
INSERT INTO "trial_column" VALUES(1,'last/validation/recall@2','metric',NULL,44);
INSERT INTO "trial_column" VALUES(1,'last/validation/recall@4','metric',NULL,45);
INSERT INTO "trial_column" VALUES(1,'last/validation/recall@8','metric',NULL,46);
INSERT INTO "trial_column" VALUES(1,'last/validation/s_mu','metric',NULL,47);
INSERT INTO "trial_column" VALUES(1,'last/validation/s_mu_upper','metric',NULL,48);
INSERT INTO "trial_column" VALUES(1,'best/train/norm_mean','metric',NULL,49);
INSERT INTO "trial_column" VALUES(1,'best/train/norm_var','metric',NULL,50);
INSERT INTO "trial_column" VALUES(1,'last/train/norm_mean','metric',NULL,51);
INSERT INTO "trial_column" VALUES(1,'last/train/norm_var','metric',NULL,52);
INSERT INTO "trial_column" VALUES(2,'optimizer.lr','tune',0,0);
INSERT INTO "trial_column" VALUES(2,'best/test/f1','metric',NULL,1);
INSERT INTO "trial_column" VALUES(2,'best/test/map@r','metric',NULL,2);
INSERT INTO "trial_column" VALUES(2,'best/test/nmi','metric',NULL,3);
INSERT INTO "trial_column" VALUES(2,'best/test/norm_mean','metric',NULL,4);
INSERT INTO "trial_column" VALUES(2,'best/test/norm_var','metric',NULL,5);
INSERT INTO "trial_column" VALUES(2,'best/test/r_precision','metric',NULL,6);
INSERT INTO "trial_column" VALUES(2,'best/test/recall@1','metric',NULL,7);
INSERT INTO "trial_column" VALUES(2,'best/test/recall@2','metric',NULL,8);
INSERT INTO "trial_column" VALUES(2,'best/test/recall@4','metric',NULL,9);
INSERT INTO "trial_column" VALUES(2,'best/test/recall@8','metric',NULL,10);
INSERT INTO "trial_column" VALUES(2,'best/test/s_mu','metric',NULL,11);
INSERT INTO "trial_column" VALUES(2,'best/test/s_mu_upper','metric',NULL,12);
INSERT INTO "trial_column" VALUES(2,'best/validation/f1','metric',NULL,13);
INSERT INTO "trial_column" VALUES(2,'best/validation/map@r','metric',NULL,14);
INSERT INTO "trial_column" VALUES(2,'best/validation/nmi','metric',NULL,15);
INSERT INTO "trial_column" VALUES(2,'best/validation/norm_mean','metric',NULL,16);
INSERT INTO "trial_column" VALUES(2,'best/validation/norm_var','metric',NULL,17);
INSERT INTO "trial_column" VALUES(2,'best/validation/r_precision','metric',NULL,18);
INSERT INTO "trial_column" VALUES(2,'best/validation/recall@1','metric',NULL,19);
INSERT INTO "trial_column" VALUES(2,'best/validation/recall@2','metric',NULL,20);
INSERT INTO "trial_column" VALUES(2,'best/validation/recall@4','metric',NULL,21);
INSERT INTO "trial_column" VALUES(2,'best/validation/recall@8','metric',NULL,22);
INSERT INTO "trial_column" VALUES(2,'best/validation/s_mu','metric',NULL,23);
INSERT INTO "trial_column" VALUES(2,'best/validation/s_mu_upper','metric',NULL,24);
INSERT INTO "trial_column" VALUES(2,'last/test/f1','metric',NULL,25);
INSERT INTO "trial_column" VALUES(2,'last/test/map@r','metric',NULL,26);
INSERT INTO "trial_column" VALUES(2,'last/test/nmi','metric',NULL,27);
INSERT INTO "trial_column" VALUES(2,'last/test/norm_mean','metric',NULL,28);
INSERT INTO "trial_column" VALUES(2,'last/test/norm_var','metric',NULL,29);
INSERT INTO "trial_column" VALUES(2,'last/test/r_precision','metric',NULL,30);
INSERT INTO "trial_column" VALUES(2,'last/test/recall@1','metric',NULL,31);
INSERT INTO "trial_column" VALUES(2,'last/test/recall@2','metric',NULL,32);
INSERT INTO "trial_column" VALUES(2,'last/test/recall@4','metric',NULL,33);
INSERT INTO "trial_column" VALUES(2,'last/test/recall@8','metric',NULL,34);
INSERT INTO "trial_column" VALUES(2,'last/test/s_mu','metric',NULL,35);
INSERT INTO "trial_column" VALUES(2,'last/test/s_mu_upper','metric',NULL,36);
INSERT INTO "trial_column" VALUES(2,'last/validation/f1','metric',NULL,37);
INSERT INTO "trial_column" VALUES(2,'last/validation/map@r','metric',NULL,38);
INSERT INTO "trial_column" VALUES(2,'last/validation/nmi','metric',NULL,39);
INSERT INTO "trial_column" VALUES(2,'last/validation/norm_mean','metric',NULL,40);
INSERT INTO "trial_column" VALUES(2,'last/validation/norm_var','metric',NULL,41);
INSERT INTO "trial_column" VALUES(2,'last/validation/r_precision','metric',NULL,42);
INSERT INTO "trial_column" VALUES(2,'last/validation/recall@1','metric',NULL,43);
INSERT INTO "trial_column" VALUES(2,'last/validation/recall@2','metric',NULL,44);
INSERT INTO "trial_column" VALUES(2,'last/validation/recall@4','metric',NULL,45);
INSERT INTO "trial_column" VALUES(2,'last/validation/recall@8','metric',NULL,46);
INSERT INTO "trial_column" VALUES(2,'last/validation/s_mu','metric',NULL,47);
INSERT INTO "trial_column" VALUES(2,'last/validation/s_mu_upper','metric',NULL,48);
INSERT INTO "trial_column" VALUES(2,'best/train/norm_mean','metric',NULL,49);
INSERT INTO "trial_column" VALUES(2,'best/train/norm_var','metric',NULL,50);
INSERT INTO "trial_column" VALUES(2,'last/train/norm_mean','metric',NULL,51);
INSERT INTO "trial_column" VALUES(2,'last/train/norm_var','metric',NULL,52);
INSERT INTO "trial_column" VALUES(3,'seed','repeat',0,0);
INSERT INTO "trial_column" VALUES(3,'best/test/f1','metric',NULL,1);
INSERT INTO "trial_column" VALUES(3,'best/test/map@r','metric',NULL,2);
INSERT INTO "trial_column" VALUES(3,'best/test/nmi','metric',NULL,3);
INSERT INTO "trial_column" VALUES(3,'best/test/norm_mean','metric',NULL,4);
INSERT INTO "trial_column" VALUES(3,'best/test/norm_var','metric',NULL,5);
INSERT INTO "trial_column" VALUES(3,'best/test/r_precision','metric',NULL,6);
INSERT INTO "trial_column" VALUES(3,'best/test/recall@1','metric',NULL,7);
INSERT INTO "trial_column" VALUES(3,'best/test/recall@2','metric',NULL,8);
INSERT INTO "trial_column" VALUES(3,'best/test/recall@4','metric',NULL,9);
INSERT INTO "trial_column" VALUES(3,'best/test/recall@8','metric',NULL,10);
INSERT INTO "trial_column" VALUES(3,'best/test/s_mu','metric',NULL,11);
INSERT INTO "trial_column" VALUES(3,'best/test/s_mu_upper','metric',NULL,12);
INSERT INTO "trial_column" VALUES(3,'best/validation/f1','metric',NULL,13);
INSERT INTO "trial_column" VALUES(3,'best/validation/map@r','metric',NULL,14);
INSERT INTO "trial_column" VALUES(3,'best/validation/nmi','metric',NULL,15);
INSERT INTO "trial_column" VALUES(3,'best/validation/norm_mean','metric',NULL,16);
INSERT INTO "trial_column" VALUES(3,'best/validation/norm_var','metric',NULL,17);
INSERT INTO "trial_column" VALUES(3,'best/validation/r_precision','metric',NULL,18);
INSERT INTO "trial_column" VALUES(3,'best/validation/recall@1','metric',NULL,19);
INSERT INTO "trial_column" VALUES(3,'best/validation/recall@2','metric',NULL,20);
INSERT INTO "trial_column" VALUES(3,'best/validation/recall@4','metric',NULL,21);
INSERT INTO "trial_column" VALUES(3,'best/validation/recall@8','metric',NULL,22);
INSERT INTO "trial_column" VALUES(3,'best/validation/s_mu','metric',NULL,23);
INSERT INTO "trial_column" VALUES(3,'best/validation/s_mu_upper','metric',NULL,24);
INSERT INTO "trial_column" VALUES(3,'last/test/f1','metric',NULL,25);
INSERT INTO "trial_column" VALUES(3,'last/test/map@r','metric',NULL,26);
INSERT INTO "trial_column" VALUES(3,'last/test/nmi','metric',NULL,27);
INSERT INTO "trial_column" VALUES(3,'last/test/norm_mean','metric',NULL,28);
INSERT INTO "trial_column" VALUES(3,'last/test/norm_var','metric',NULL,29);
INSERT INTO "trial_column" VALUES(3,'last/test/r_precision','metric',NULL,30);
INSERT INTO "trial_column" VALUES(3,'last/test/recall@1','metric',NULL,31);
INSERT INTO "trial_column" VALUES(3,'last/test/recall@2','metric',NULL,32);
INSERT INTO "trial_column" VALUES(3,'last/test/recall@4','metric',NULL,33);
INSERT INTO "trial_column" VALUES(3,'last/test/recall@8','metric',NULL,34);
INSERT INTO "trial_column" VALUES(3,'last/test/s_mu','metric',NULL,35);
INSERT INTO "trial_column" VALUES(3,'last/test/s_mu_upper','metric',NULL,36);
INSERT INTO "trial_column" VALUES(3,'last/validation/f1','metric',NULL,37);
INSERT INTO "trial_column" VALUES(3,'last/validation/map@r','metric',NULL,38);
INSERT INTO "trial_column" VALUES(3,'last/validation/nmi','metric',NULL,39);
INSERT INTO "trial_column" VALUES(3,'last/validation/norm_mean','metric',NULL,40);
INSERT INTO "trial_column" VALUES(3,'last/validation/norm_var','metric',NULL,41);
INSERT INTO "trial_column" VALUES(3,'last/validation/r_precision','metric',NULL,42);
INSERT INTO "trial_column" VALUES(3,'last/validation/recall@1','metric',NULL,43);
INSERT INTO "trial_column" VALUES(3,'last/validation/recall@2','metric',NULL,44);
INSERT INTO "trial_column" VALUES(3,'last/validation/recall@4','metric',NULL,45);
INSERT INTO "trial_column" VALUES(3,'last/validation/recall@8','metric',NULL,46);
INSERT INTO "trial_column" VALUES(3,'last/validation/s_mu','metric',NULL,47);
INSERT INTO "trial_column" VALUES(3,'last/validation/s_mu_upper','metric',NULL,48);
INSERT INTO "trial_column" VALUES(3,'best/train/norm_mean','metric',NULL,49);
INSERT INTO "trial_column" VALUES(3,'best/train/norm_var','metric',NULL,50);
INSERT INTO "trial_column" VALUES(3,'last/train/norm_mean','metric',NULL,51);
INSERT INTO "trial_column" VALUES(3,'last/train/norm_var','metric',NULL,52);
INSERT INTO "trial_column" VALUES(4,'loss','compare',0,NULL);
INSERT INTO "trial_column" VALUES(4,'seed','repeat',1,0);
INSERT INTO "trial_column" VALUES(4,'best/test/f1','metric',NULL,1);
INSERT INTO "trial_column" VALUES(4,'best/test/map@r','metric',NULL,2);
INSERT INTO "trial_column" VALUES(4,'best/test/nmi','metric',NULL,3);
INSERT INTO "trial_column" VALUES(4,'best/test/norm_mean','metric',NULL,4);
INSERT INTO "trial_column" VALUES(4,'best/test/norm_var','metric',NULL,5);
INSERT INTO "trial_column" VALUES(4,'best/test/r_precision','metric',NULL,6);
INSERT INTO "trial_column" VALUES(4,'best/test/recall@1','metric',NULL,7);
INSERT INTO "trial_column" VALUES(4,'best/test/recall@2','metric',NULL,8);
INSERT INTO "trial_column" VALUES(4,'best/test/recall@4','metric',NULL,9);
INSERT INTO "trial_column" VALUES(4,'best/test/recall@8','metric',NULL,10);
INSERT INTO "trial_column" VALUES(4,'best/test/s_mu','metric',NULL,11);
INSERT INTO "trial_column" VALUES(4,'best/test/s_mu_upper','metric',NULL,12);
INSERT INTO "trial_column" VALUES(4,'best/validation/f1','metric',NULL,13);
INSERT INTO "trial_column" VALUES(4,'best/validation/map@r','metric',NULL,14);
INSERT INTO "trial_column" VALUES(4,'best/validation/nmi','metric',NULL,15);
INSERT INTO "trial_column" VALUES(4,'best/validation/norm_mean','metric',NULL,16);
INSERT INTO "trial_column" VALUES(4,'best/validation/norm_var','metric',NULL,17);
INSERT INTO "trial_column" VALUES(4,'best/validation/r_precision','metric',NULL,18);
INSERT INTO "trial_column" VALUES(4,'best/validation/recall@1','metric',NULL,19);
INSERT INTO "trial_column" VALUES(4,'best/validation/recall@2','metric',NULL,20);
INSERT INTO "trial_column" VALUES(4,'best/validation/recall@4','metric',NULL,21);
INSERT INTO "trial_column" VALUES(4,'best/validation/recall@8','metric',NULL,22);
INSERT INTO "trial_column" VALUES(4,'best/validation/s_mu','metric',NULL,23);
INSERT INTO "trial_column" VALUES(4,'best/validation/s_mu_upper','metric',NULL,24);
INSERT INTO "trial_column" VALUES(4,'last/test/f1','metric',NULL,25);
INSERT INTO "trial_column" VALUES(4,'last/test/map@r','metric',NULL,26);
INSERT INTO "trial_column" VALUES(4,'last/test/nmi','metric',NULL,27);
INSERT INTO "trial_column" VALUES(4,'last/test/norm_mean','metric',NULL,28);
INSERT INTO "trial_column" VALUES(4,'last/test/norm_var','metric',NULL,29);
INSERT INTO "trial_column" VALUES(4,'last/test/r_precision','metric',NULL,30);
INSERT INTO "trial_column" VALUES(4,'last/test/recall@1','metric',NULL,31);
INSERT INTO "trial_column" VALUES(4,'last/test/recall@2','metric',NULL,32);
INSERT INTO "trial_column" VALUES(4,'last/test/recall@4','metric',NULL,33);
INSERT INTO "trial_column" VALUES(4,'last/test/recall@8','metric',NULL,34);
INSERT INTO "trial_column" VALUES(4,'last/test/s_mu','metric',NULL,35);
INSERT INTO "trial_column" VALUES(4,'last/test/s_mu_upper','metric',NULL,36);
INSERT INTO "trial_column" VALUES(4,'last/validation/f1','metric',NULL,37);
INSERT INTO "trial_column" VALUES(4,'last/validation/map@r','metric',NULL,38);
INSERT INTO "trial_column" VALUES(4,'last/validation/nmi','metric',NULL,39);
INSERT INTO "trial_column" VALUES(4,'last/validation/norm_mean','metric',NULL,40);
INSERT INTO "trial_column" VALUES(4,'last/validation/norm_var','metric',NULL,41);
INSERT INTO "trial_column" VALUES(4,'last/validation/r_precision','metric',NULL,42);
INSERT INTO "trial_column" VALUES(4,'last/validation/recall@1','metric',NULL,43);
INSERT INTO "trial_column" VALUES(4,'last/validation/recall@2','metric',NULL,44);
INSERT INTO "trial_column" VALUES(4,'last/validation/recall@4','metric',NULL,45);
INSERT INTO "trial_column" VALUES(4,'last/validation/recall@8','metric',NULL,46);
INSERT INTO "trial_column" VALUES(4,'last/validation/s_mu','metric',NULL,47);
INSERT INTO "trial_column" VALUES(4,'last/validation/s_mu_upper','metric',NULL,48);
INSERT INTO "trial_column" VALUES(4,'best/train/norm_mean','metric',NULL,49);
INSERT INTO "trial_column" VALUES(4,'best/train/norm_var','metric',NULL,50);
INSERT INTO "trial_column" VALUES(4,'last/train/norm_mean','metric',NULL,51);
INSERT INTO "trial_column" VALUES(4,'last/train/norm_var','metric',NULL,52);
INSERT INTO "trial_column" VALUES(5,'seed','repeat',0,0);
INSERT INTO "trial_column" VALUES(6,'seed','repeat',0,0);
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
CREATE INDEX ix_sweep_started_state ON sweep (started, state);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('request',0);
INSERT INTO "sqlite_sequence" VALUES('sweep',7);
INSERT INTO "sqlite_sequence" VALUES('training',16);
INSERT INTO "sqlite_sequence" VALUES('trial',20);
INSERT INTO "sqlite_sequence" VALUES('outbox',56);
INSERT INTO "sqlite_sequence" VALUES('attempt',9);
INSERT INTO "sqlite_sequence" VALUES('metric',135);
INSERT INTO "sqlite_sequence" VALUES('project',1);
COMMIT;
