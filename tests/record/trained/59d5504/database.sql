BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0008');
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
	reason TEXT, 
	CONSTRAINT fk_attempt_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_attempt_training_id_number UNIQUE (training_id, number), 
	CONSTRAINT uq_attempt_uid UNIQUE (uid)
);
INSERT INTO "attempt" VALUES(1,'989d623c-af3c-49cd-930b-31cea6e3fd7d',1,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,355,'2026-11-22 11:03:03.833957','2026-11-22 11:03:06.275448',NULL);
INSERT INTO "attempt" VALUES(2,'02ecab72-d384-4ee1-9c6d-ea49ea488fe1',2,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,355,'2026-11-22 11:03:06.658794','2026-11-22 11:03:06.787390',NULL);
INSERT INTO "attempt" VALUES(3,'153b5d27-bea4-4304-8768-e30efb97feb8',3,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,353,'2026-11-22 11:03:06.814226','2026-11-22 11:03:06.964396',NULL);
INSERT INTO "attempt" VALUES(4,'27fc7294-2548-4964-924d-9a8053e4ee5d',4,1,'finished',1,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,351,'2026-11-22 11:03:07.019560','2026-11-22 11:03:07.286205',NULL);
INSERT INTO "attempt" VALUES(5,'d1d3b0a0-85f0-4ef5-bd02-55e0629ddc9a',5,1,'failed',2,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',0,NULL,0,'2026-11-22 11:03:07.714685','2026-11-22 11:03:07.732925','ValueError: no such thing as seed 9');
INSERT INTO "attempt" VALUES(6,'7873cf59-fcde-4032-9699-96c82026b8fb',6,1,'finished',3,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',2,NULL,74,'2026-11-22 11:03:08.160656','2026-11-22 11:03:08.194903',NULL);
INSERT INTO "attempt" VALUES(7,'70d6b256-ed3e-4677-a81b-4de98ac7ed5d',7,1,'finished',4,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,354,'2026-11-22 11:03:08.524729','2026-11-22 11:03:08.643128',NULL);
INSERT INTO "attempt" VALUES(8,'dba15f4d-4365-4afd-9fb5-4d88b99ad3cf',8,1,'finished',4,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',6,NULL,353,'2026-11-22 11:03:08.678319','2026-11-22 11:03:08.787545',NULL);
INSERT INTO "attempt" VALUES(9,'9699f9fb-d264-473b-862d-dee17a2e4e23',9,1,'stopped',4,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',4,'last.pt',172,'2026-11-22 11:03:08.818064','2026-11-22 11:03:08.879716',NULL);
INSERT INTO "attempt" VALUES(10,'11bf7229-56ac-4a6d-bf73-17ad35e0c2fd',10,1,'stopped',4,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'inline','host-a',4,'last.pt',175,'2026-11-22 11:03:08.913851','2026-11-22 11:03:08.979858',NULL);
INSERT INTO "attempt" VALUES(11,'a62e9633-6545-43eb-83f5-2a07617f6bd6',12,1,'running',7,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-of-59d5504','host-a',10,'last.pt',101,'2026-11-22 11:03:09.416082',NULL,NULL);
INSERT INTO "attempt" VALUES(12,'6e641441-4334-47bd-a233-aac716ed0ed7',13,1,'lost',7,'{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}',NULL,'slot-that-was-lost','host-a',13,'last.pt',174,'2026-11-22 11:03:09.419585','2026-11-22 11:03:09.947141','the node died');
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
INSERT INTO "candidate" VALUES(2,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(3,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(4,0,0,'{"optimizer.lr": "0.001"}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(4,0,1,'{"optimizer.lr": "0.002"}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(4,0,2,'{"optimizer.lr": "0.003"}',NULL,NULL,NULL,0.632013258794815,2);
INSERT INTO "candidate" VALUES(4,0,3,'{"optimizer.lr": "1e-09"}',NULL,NULL,NULL,6.61752130954357586922e-01,2);
INSERT INTO "candidate" VALUES(5,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(6,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(6,1,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(7,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "candidate" VALUES(8,0,0,'{}',NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "cell" VALUES(1,0,'{"loss": "triplet"}','{"cell": 0, "status": "complete", "candidate": 0, "labels": {}, "selection_key": "best/validation/map@r", "score": {"mean": 0.6879413551082152, "std": 0.023408218260920335, "n": 2}, "metrics": {"last/test/map@r": {"mean": 0.35676243663248075, "std": 0.07769532002101551, "n": 2}, "last/test/recall@1": {"mean": 0.742296918767507, "std": 0.009903456319139286, "n": 2}, "last/test/recall@2": {"mean": 0.8550420168067228, "std": 0.008913110687225436, "n": 2}, "last/test/recall@4": {"mean": 0.9257703081232493, "std": 0.007922765055311507, "n": 2}, "last/test/recall@8": {"mean": 0.9656862745098039, "std": 0.0009903456319139286, "n": 2}, "last/test/r_precision": {"mean": 0.4974263206606008, "std": 0.06557831544026335, "n": 2}, "last/test/nmi": {"mean": 0.3539762631640482, "std": 0.08967474954796394, "n": 2}, "last/test/f1": {"mean": 0.5002795681138852, "std": 0.06515076894416134, "n": 2}, "last/test/norm_mean": {"mean": 0.742719458285667, "std": 0.1473777355014894, "n": 2}, "last/test/norm_var": {"mean": 0.05914639591272556, "std": 0.04796389886809926, "n": 2}, "last/test/s_mu": {"mean": 7.1092321209013285, "std": 0.03965906769258573, "n": 2}, "last/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "last/validation/map@r": {"mean": 0.6048056805229713, "std": 0.05334610647113542, "n": 2}, "last/validation/recall@1": {"mean": 0.9513888888888888, "std": 0.025534411542847538, "n": 2}, "last/validation/recall@2": {"mean": 0.9708333333333333, "std": 0.013749298523071708, "n": 2}, "last/validation/recall@4": {"mean": 0.9805555555555556, "std": 0.007856742013183912, "n": 2}, "last/validation/recall@8": {"mean": 0.9916666666666667, "std": 0.003928371006591917, "n": 2}, "last/validation/r_precision": {"mean": 0.694030469977422, "std": 0.02675521441894801, "n": 2}, "last/validation/nmi": {"mean": 0.4197868198067992, "std": 0.10695689799332767, "n": 2}, "last/validation/f1": {"mean": 0.7406321228039866, "std": 0.033394560382546075, "n": 2}, "last/validation/norm_mean": {"mean": 0.6498245985557636, "std": 0.009821485552461559, "n": 2}, "last/validation/norm_var": {"mean": 0.029426990635109597, "std": 0.009684026429407678, "n": 2}, "last/validation/s_mu": {"mean": 5.218908647176725, "std": 0.32143681451619055, "n": 2}, "last/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "last/train/norm_mean": {"mean": 0.8008117905378671, "std": 0.11788891761643172, "n": 2}, "last/train/norm_var": {"mean": 0.04905913116940183, "std": 0.0228574541701182, "n": 2}, "best/test/map@r": {"mean": 0.31283295124781874, "std": 0.2155029416304903, "n": 2}, "best/test/recall@1": {"mean": 0.6834733893557423, "std": 0.14260977099560618, "n": 2}, "best/test/recall@2": {"mean": 0.8109243697478992, "std": 0.10101525445522103, "n": 2}, "best/test/recall@4": {"mean": 0.9026610644257703, "std": 0.0604110835467498, "n": 2}, "best/test/recall@8": {"mean": 0.9530812324929971, "std": 0.03862347964464329, "n": 2}, "best/test/r_precision": {"mean": 0.4639845569507196, "std": 0.1834149402558745, "n": 2}, "best/test/nmi": {"mean": 0.3159204033978874, "std": 0.29470729223729825, "n": 2}, "best/test/f1": {"mean": 0.46925142109073426, "std": 0.21463315324254553, "n": 2}, "best/test/norm_mean": {"mean": 0.5718851509172709, "std": 0.06738533858720344, "n": 2}, "best/test/norm_var": {"mean": 0.008578973851105455, "std": 0.009053375561176481, "n": 2}, "best/test/s_mu": {"mean": 5.224444957244087, "std": 0.3391133707679204, "n": 2}, "best/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "best/validation/map@r": {"mean": 0.6879413551082152, "std": 0.023408218260920335, "n": 2}, "best/validation/recall@1": {"mean": 0.9666666666666667, "std": 0.015713484026367668, "n": 2}, "best/validation/recall@2": {"mean": 0.9819444444444445, "std": 0.005892556509887954, "n": 2}, "best/validation/recall@4": {"mean": 0.9847222222222223, "std": 0.005892556509887954, "n": 2}, "best/validation/recall@8": {"mean": 0.9930555555555556, "std": 0.0019641855032959585, "n": 2}, "best/validation/r_precision": {"mean": 0.7515796405544978, "std": 0.021021450569219922, "n": 2}, "best/validation/nmi": {"mean": 0.539573359169954, "std": 0.14375758197391297, "n": 2}, "best/validation/f1": {"mean": 0.7923252538107055, "std": 0.0854041132043695, "n": 2}, "best/validation/norm_mean": {"mean": 0.5430701715664731, "std": 0.010697617848864971, "n": 2}, "best/validation/norm_var": {"mean": 0.006473098850825087, "std": 0.00604923952735333, "n": 2}, "best/validation/s_mu": {"mean": 3.724833332002236, "std": 0.09750005077477869, "n": 2}, "best/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "best/train/norm_mean": {"mean": 0.5762722528285835, "std": 0.06359851691846545, "n": 2}, "best/train/norm_var": {"mean": 0.006854737155947064, "std": 0.0026238354239247496, "n": 2}}, "candidates": 1}','2026-11-22 11:03:07.192303',NULL,0);
INSERT INTO "cell" VALUES(1,1,'{"loss": "normface"}','{"cell": 1, "status": "complete", "candidate": 0, "labels": {}, "selection_key": "best/validation/map@r", "score": {"mean": 0.7399062721276031, "std": 0.041987690005039026, "n": 2}, "metrics": {"last/test/map@r": {"mean": 0.33634599860900694, "std": 0.11426991855679323, "n": 2}, "last/test/recall@1": {"mean": 0.726890756302521, "std": 0.03367175148507373, "n": 2}, "last/test/recall@2": {"mean": 0.8480392156862746, "std": 0.01881656700636472, "n": 2}, "last/test/recall@4": {"mean": 0.9208683473389356, "std": 0.016835875742536865, "n": 2}, "last/test/recall@8": {"mean": 0.9656862745098039, "std": 0.0029710368957417857, "n": 2}, "last/test/r_precision": {"mean": 0.48317852638053416, "std": 0.09186561017752123, "n": 2}, "last/test/nmi": {"mean": 0.321282366651182, "std": 0.1162922690280286, "n": 2}, "last/test/f1": {"mean": 0.48300734592003475, "std": 0.08255256240988738, "n": 2}, "last/test/norm_mean": {"mean": 0.8195001786412979, "std": 0.1436408357958097, "n": 2}, "last/test/norm_var": {"mean": 0.0698072072626079, "std": 0.05362306167780508, "n": 2}, "last/test/s_mu": {"mean": 6.8128989535830025, "std": 0.05215584300220102, "n": 2}, "last/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "last/validation/map@r": {"mean": 0.6572676315970467, "std": 0.10001928516038903, "n": 2}, "last/validation/recall@1": {"mean": 0.9750000000000001, "std": 0.019641855032959663, "n": 2}, "last/validation/recall@2": {"mean": 0.9833333333333334, "std": 0.011785113019775828, "n": 2}, "last/validation/recall@4": {"mean": 0.9888888888888889, "std": 0.003928371006591917, "n": 2}, "last/validation/recall@8": {"mean": 0.9958333333333333, "std": 0.0019641855032959585, "n": 2}, "last/validation/r_precision": {"mean": 0.730468199963237, "std": 0.07236009855737163, "n": 2}, "last/validation/nmi": {"mean": 0.5047213423388742, "std": 0.24262680432929964, "n": 2}, "last/validation/f1": {"mean": 0.784075912576033, "std": 0.10417323327497947, "n": 2}, "last/validation/norm_mean": {"mean": 0.7436889471693171, "std": 0.05019945026573353, "n": 2}, "last/validation/norm_var": {"mean": 0.031578171556316696, "std": 0.0028181344774856976, "n": 2}, "last/validation/s_mu": {"mean": 4.93468218817317, "std": 0.28399857030275594, "n": 2}, "last/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "last/train/norm_mean": {"mean": 0.8205313345167482, "std": 0.15080550839800144, "n": 2}, "last/train/norm_var": {"mean": 0.039478989498231476, "std": 0.014489627613460697, "n": 2}, "best/test/map@r": {"mean": 0.310984957737527, "std": 0.2081064992611041, "n": 2}, "best/test/recall@1": {"mean": 0.6764705882352942, "std": 0.12280285835732754, "n": 2}, "best/test/recall@2": {"mean": 0.803921568627451, "std": 0.0792276505531146, "n": 2}, "best/test/recall@4": {"mean": 0.8949579831932774, "std": 0.04753659033186873, "n": 2}, "best/test/recall@8": {"mean": 0.9544817927170868, "std": 0.03268140585315972, "n": 2}, "best/test/r_precision": {"mean": 0.46406527413465265, "std": 0.17570540228359532, "n": 2}, "best/test/nmi": {"mean": 0.31033743174054096, "std": 0.293180119756151, "n": 2}, "best/test/f1": {"mean": 0.46436084138468825, "std": 0.2196699294991193, "n": 2}, "best/test/norm_mean": {"mean": 0.5804144111292369, "std": 0.06350184438006298, "n": 2}, "best/test/norm_var": {"mean": 0.008614475396324645, "std": 0.008940438038928288, "n": 2}, "best/test/s_mu": {"mean": 5.215353824577184, "std": 0.3384822138571187, "n": 2}, "best/test/s_mu_upper": {"mean": 9.447221813845593, "std": 0.0, "n": 2}, "best/validation/map@r": {"mean": 0.7399062721276031, "std": 0.041987690005039026, "n": 2}, "best/validation/recall@1": {"mean": 0.9743055555555555, "std": 0.016695576778015725, "n": 2}, "best/validation/recall@2": {"mean": 0.9847222222222223, "std": 0.005892556509887954, "n": 2}, "best/validation/recall@4": {"mean": 0.9888888888888889, "std": 0.007856742013183912, "n": 2}, "best/validation/recall@8": {"mean": 0.9916666666666667, "std": 0.007856742013183834, "n": 2}, "best/validation/r_precision": {"mean": 0.7906672579968301, "std": 0.03784237545290982, "n": 2}, "best/validation/nmi": {"mean": 0.5897935049982203, "std": 0.14484606462786243, "n": 2}, "best/validation/f1": {"mean": 0.8128857682207455, "std": 0.08922394189326589, "n": 2}, "best/validation/norm_mean": {"mean": 0.5523719523929888, "std": 0.007094330870268216, "n": 2}, "best/validation/norm_var": {"mean": 0.006183853598582548, "std": 0.005756265688674437, "n": 2}, "best/validation/s_mu": {"mean": 3.7182446130588405, "std": 0.09968364657273503, "n": 2}, "best/validation/s_mu_upper": {"mean": 6.708203932499369, "std": 0.0, "n": 2}, "best/train/norm_mean": {"mean": 0.583663839398578, "std": 0.06664330450110208, "n": 2}, "best/train/norm_var": {"mean": 0.006546649417356216, "std": 0.0032796452983162574, "n": 2}}, "candidates": 1}','2026-11-22 11:03:07.600862',NULL,0);
INSERT INTO "cell" VALUES(2,0,'{"loss": "triplet"}','{"cell": 0, "status": "failed", "candidate": null, "labels": {}, "selection_key": "best/validation/map@r", "score": null, "metrics": {}, "candidates": 1}','2026-11-22 11:03:08.064080',NULL,0);
INSERT INTO "cell" VALUES(3,0,'{"optimizer.lr": "1e+30"}','{"cell": 0, "status": "diverged", "candidate": null, "labels": {}, "selection_key": "best/validation/map@r", "score": null, "metrics": {}, "candidates": 1}','2026-11-22 11:03:08.483272',NULL,0);
INSERT INTO "cell" VALUES(4,0,'{}','{"cell": 0, "status": "complete", "candidate": 1, "labels": {"optimizer.lr": "0.002"}, "selection_key": "best/validation/map@r", "score": {"mean": 0.7511573491285471, "std": null, "n": 1}, "metrics": {"last/test/map@r": {"mean": 0.39834848354222274, "std": null, "n": 1}, "last/test/recall@1": {"mean": 0.7969187675070029, "std": null, "n": 1}, "last/test/recall@2": {"mean": 0.8809523809523809, "std": null, "n": 1}, "last/test/recall@4": {"mean": 0.927170868347339, "std": null, "n": 1}, "last/test/recall@8": {"mean": 0.9677871148459384, "std": null, "n": 1}, "last/test/r_precision": {"mean": 0.5243230169779504, "std": null, "n": 1}, "last/test/nmi": {"mean": 0.37665922606053653, "std": null, "n": 1}, "last/test/f1": {"mean": 0.5215112990144997, "std": null, "n": 1}, "last/test/norm_mean": {"mean": 0.788277430110285, "std": null, "n": 1}, "last/test/norm_var": {"mean": 0.042120420388364645, "std": null, "n": 1}, "last/test/s_mu": {"mean": 7.044755538844965, "std": null, "n": 1}, "last/test/s_mu_upper": {"mean": 9.447221813845593, "std": null, "n": 1}, "last/validation/map@r": {"mean": 0.7511573491285471, "std": null, "n": 1}, "last/validation/recall@1": {"mean": 0.9944444444444445, "std": null, "n": 1}, "last/validation/recall@2": {"mean": 0.9972222222222222, "std": null, "n": 1}, "last/validation/recall@4": {"mean": 0.9972222222222222, "std": null, "n": 1}, "last/validation/recall@8": {"mean": 0.9972222222222222, "std": null, "n": 1}, "last/validation/r_precision": {"mean": 0.798895287740217, "std": null, "n": 1}, "last/validation/nmi": {"mean": 0.7173029595347145, "std": null, "n": 1}, "last/validation/f1": {"mean": 0.904569975816953, "std": null, "n": 1}, "last/validation/norm_mean": {"mean": 0.7841508116159174, "std": null, "n": 1}, "last/validation/norm_var": {"mean": 0.013051603617298034, "std": null, "n": 1}, "last/validation/s_mu": {"mean": 4.969437482168232, "std": null, "n": 1}, "last/validation/s_mu_upper": {"mean": 6.708203932499369, "std": null, "n": 1}, "last/train/norm_mean": {"mean": 0.9470025446899699, "std": null, "n": 1}, "last/train/norm_var": {"mean": 0.034868551552643436, "std": null, "n": 1}, "best/test/map@r": {"mean": 0.39834848354222274, "std": null, "n": 1}, "best/test/recall@1": {"mean": 0.7969187675070029, "std": null, "n": 1}, "best/test/recall@2": {"mean": 0.8809523809523809, "std": null, "n": 1}, "best/test/recall@4": {"mean": 0.927170868347339, "std": null, "n": 1}, "best/test/recall@8": {"mean": 0.9677871148459384, "std": null, "n": 1}, "best/test/r_precision": {"mean": 0.5243230169779504, "std": null, "n": 1}, "best/test/nmi": {"mean": 0.37665922606053653, "std": null, "n": 1}, "best/test/f1": {"mean": 0.5215112990144997, "std": null, "n": 1}, "best/test/norm_mean": {"mean": 0.788277430110285, "std": null, "n": 1}, "best/test/norm_var": {"mean": 0.042120420388364645, "std": null, "n": 1}, "best/test/s_mu": {"mean": 7.044755538844965, "std": null, "n": 1}, "best/test/s_mu_upper": {"mean": 9.447221813845593, "std": null, "n": 1}, "best/validation/map@r": {"mean": 0.7511573491285471, "std": null, "n": 1}, "best/validation/recall@1": {"mean": 0.9944444444444445, "std": null, "n": 1}, "best/validation/recall@2": {"mean": 0.9972222222222222, "std": null, "n": 1}, "best/validation/recall@4": {"mean": 0.9972222222222222, "std": null, "n": 1}, "best/validation/recall@8": {"mean": 0.9972222222222222, "std": null, "n": 1}, "best/validation/r_precision": {"mean": 0.798895287740217, "std": null, "n": 1}, "best/validation/nmi": {"mean": 0.7173029595347145, "std": null, "n": 1}, "best/validation/f1": {"mean": 0.904569975816953, "std": null, "n": 1}, "best/validation/norm_mean": {"mean": 0.7841508116159174, "std": null, "n": 1}, "best/validation/norm_var": {"mean": 0.013051603617298034, "std": null, "n": 1}, "best/validation/s_mu": {"mean": 4.969437482168232, "std": null, "n": 1}, "best/validation/s_mu_upper": {"mean": 6.708203932499369, "std": null, "n": 1}, "best/train/norm_mean": {"mean": 0.9470025446899699, "std": null, "n": 1}, "best/train/norm_var": {"mean": 0.034868551552643436, "std": null, "n": 1}}, "candidates": 4}','2026-11-22 11:03:09.264314',NULL,0);
INSERT INTO "cell" VALUES(5,0,'{"loss": "triplet"}','{"cell": 0, "status": "missing", "candidate": null, "labels": {}, "selection_key": "best/validation/map@r", "score": null, "metrics": {}, "candidates": 1}','2026-11-22 11:03:09.303226',NULL,0);
INSERT INTO "cell" VALUES(6,0,'{"loss": "triplet"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(6,1,'{"loss": "normface"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(7,0,'{"loss": "triplet"}',NULL,NULL,NULL,0);
INSERT INTO "cell" VALUES(8,0,'{"loss": "triplet"}',NULL,NULL,NULL,0);
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
INSERT INTO "finding" VALUES('inline','931b0c2d0d82e1f7','host-a','missing','omniglot28.npz is missing: looked in /home/ann/.metricsweep/data for omniglot28.npz or omniglot-py/images_background; fetch the data set, or set METRICSWEEP_DATA (or --data) to the folder that holds it; `python -m workers data fetch omniglot` fetches it','2026-11-22 11:03:09.379525');
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
INSERT INTO "lease" VALUES('conductor','conductor-of-59d5504',7,0.0,600.0);
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
INSERT INTO "log" VALUES(1,2,28,'step 5/20 loss 0.7362 validation/map@r 0.7045 validation/recall@1 0.9556
');
INSERT INTO "log" VALUES(1,3,101,'step 10/20 loss 0.6482 validation/map@r 0.6693 validation/recall@1 0.9833
');
INSERT INTO "log" VALUES(1,4,175,'step 15/20 loss 0.3121 validation/map@r 0.6469 validation/recall@1 0.9833
');
INSERT INTO "log" VALUES(1,5,249,'step 20/20 loss 0.3177 validation/map@r 0.6425 validation/recall@1 0.9694
');
INSERT INTO "log" VALUES(1,6,323,'done: keeping step 5 as best.pt
');
INSERT INTO "log" VALUES(2,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(2,2,28,'step 5/20 loss 0.9195 validation/map@r 0.6714 validation/recall@1 0.9778
');
INSERT INTO "log" VALUES(2,3,101,'step 10/20 loss 0.4729 validation/map@r 0.6647 validation/recall@1 0.9694
');
INSERT INTO "log" VALUES(2,4,175,'step 15/20 loss 0.2382 validation/map@r 0.6251 validation/recall@1 0.9528
');
INSERT INTO "log" VALUES(2,5,249,'step 20/20 loss 0.3509 validation/map@r 0.5671 validation/recall@1 0.9333
');
INSERT INTO "log" VALUES(2,6,323,'done: keeping step 5 as best.pt
');
INSERT INTO "log" VALUES(3,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(3,2,28,'step 5/20 loss 5.979 validation/map@r 0.7696 validation/recall@1 0.9625
');
INSERT INTO "log" VALUES(3,3,100,'step 10/20 loss 4.529 validation/map@r 0.7361 validation/recall@1 0.9861
');
INSERT INTO "log" VALUES(3,4,173,'step 15/20 loss 1.117 validation/map@r 0.7129 validation/recall@1 0.9861
');
INSERT INTO "log" VALUES(3,5,246,'step 20/20 loss 0.008738 validation/map@r 0.728 validation/recall@1 0.9889
');
INSERT INTO "log" VALUES(3,6,321,'done: keeping step 5 as best.pt
');
INSERT INTO "log" VALUES(4,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(4,2,28,'step 5/20 loss 6.926 validation/map@r 0.7102 validation/recall@1 0.9861
');
INSERT INTO "log" VALUES(4,3,100,'step 10/20 loss 3.195 validation/map@r 0.6896 validation/recall@1 0.9611
');
INSERT INTO "log" VALUES(4,4,173,'step 15/20 loss 1.691 validation/map@r 0.6361 validation/recall@1 0.9583
');
INSERT INTO "log" VALUES(4,5,246,'step 20/20 loss 2.406 validation/map@r 0.5865 validation/recall@1 0.9611
');
INSERT INTO "log" VALUES(4,6,319,'done: keeping step 5 as best.pt
');
INSERT INTO "log" VALUES(6,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(6,2,28,'diverged after step 1: the loss is not finite
');
INSERT INTO "log" VALUES(7,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(7,2,28,'step 5/20 loss 0.601 validation/map@r 0.5948 validation/recall@1 0.975
');
INSERT INTO "log" VALUES(7,3,99,'step 10/20 loss 0.6492 validation/map@r 0.6686 validation/recall@1 0.9778
');
INSERT INTO "log" VALUES(7,4,173,'step 15/20 loss 0.3748 validation/map@r 0.7116 validation/recall@1 0.9889
');
INSERT INTO "log" VALUES(7,5,247,'step 20/20 loss 0.3316 validation/map@r 0.7451 validation/recall@1 0.9861
');
INSERT INTO "log" VALUES(7,6,321,'done: keeping step 20 as best.pt
');
INSERT INTO "log" VALUES(8,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(8,2,28,'step 5/20 loss 0.501 validation/map@r 0.5943 validation/recall@1 0.975
');
INSERT INTO "log" VALUES(8,3,99,'step 10/20 loss 0.413 validation/map@r 0.6892 validation/recall@1 0.9806
');
INSERT INTO "log" VALUES(8,4,172,'step 15/20 loss 0.202 validation/map@r 0.7289 validation/recall@1 0.9917
');
INSERT INTO "log" VALUES(8,5,245,'step 20/20 loss 0.08198 validation/map@r 0.7512 validation/recall@1 0.9944
');
INSERT INTO "log" VALUES(8,6,320,'done: keeping step 20 as best.pt
');
INSERT INTO "log" VALUES(9,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(9,2,28,'step 5/20 loss 0.4298 validation/map@r 0.5563 validation/recall@1 0.9556
');
INSERT INTO "log" VALUES(9,3,101,'step 10/20 loss 0.267 validation/map@r 0.632 validation/recall@1 0.975
');
INSERT INTO "log" VALUES(10,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(10,2,28,'step 5/20 loss 0.7201 validation/map@r 0.5995 validation/recall@1 0.9694
');
INSERT INTO "log" VALUES(10,3,101,'step 10/20 loss 0.7761 validation/map@r 0.6618 validation/recall@1 0.9778
');
INSERT INTO "log" VALUES(11,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(11,6,28,'step 5/20 loss 0.7847 validation/map@r 0.5139 validation/recall@1 0.9083
');
INSERT INTO "log" VALUES(12,1,0,'training from step 0 on cpu
');
INSERT INTO "log" VALUES(12,6,28,'step 5/20 loss 1.007 validation/map@r 0.4734 validation/recall@1 0.9194
');
INSERT INTO "log" VALUES(12,12,100,'step 10/20 loss 0.8905 validation/map@r 0.4805 validation/recall@1 0.8889
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
INSERT INTO "metric" VALUES(1,1,'train/loss',5,7.36248612403869628906e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(2,1,'train/lr',5,0.001,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(3,1,'train/norm_mean',5,1.2352186739444732666e+00,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(4,1,'train/norm_var',5,1.62440696142363893983e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(5,1,'train/s_mu',5,1.15761351585388183593e+00,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(6,1,'train/cos_ap',5,5.76259954032725230099e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(7,1,'train/cos_an',5,3.77807837319428629907e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(8,1,'validation/map@r',5,7.04493464976006733557e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(9,1,'validation/recall@1',5,9.55555555555555602431e-01,'2026-11-22 11:03:06.104583');
INSERT INTO "metric" VALUES(10,1,'train/loss',10,6.48220360279083251953e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(11,1,'train/lr',10,0.001,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(12,1,'train/norm_mean',10,1.1572167612612247467e+00,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(13,1,'train/norm_var',10,1.38986152494668030454e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(14,1,'train/s_mu',10,1.15889453887939453125e+00,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(15,1,'train/cos_ap',10,5.99104810241247176527e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(16,1,'train/cos_an',10,3.64328877637989601012e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(17,1,'validation/map@r',10,6.6934803784743424071e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(18,1,'validation/recall@1',10,9.83333333333333281522e-01,'2026-11-22 11:03:06.126900');
INSERT INTO "metric" VALUES(19,1,'train/loss',15,3.12062859535217285156e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(20,1,'train/lr',15,0.001,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(21,1,'train/norm_mean',15,1.31559524685144424438e+00,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(22,1,'train/norm_var',15,2.3493158322963650364e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(23,1,'train/s_mu',15,1.15732121467590332031e+00,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(24,1,'train/cos_ap',15,7.10552226204744119542e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(25,1,'train/cos_an',15,1.80095941472256715343e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(26,1,'validation/map@r',15,6.46858151493084343464e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(27,1,'validation/recall@1',15,9.83333333333333281522e-01,'2026-11-22 11:03:06.145139');
INSERT INTO "metric" VALUES(28,1,'train/loss',20,3.17670702934265136718e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(29,1,'train/lr',20,0.001,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(30,1,'train/norm_mean',20,1.33452488109469413757e+00,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(31,1,'train/norm_var',20,2.0639338644793259192e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(32,1,'train/s_mu',20,1.16210377216339111328e+00,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(33,1,'train/cos_ap',20,6.83782693074930336685e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(34,1,'train/cos_an',20,1.90638792519142646897e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(35,1,'validation/map@r',20,6.42527074158610767007e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(36,1,'validation/recall@1',20,9.69444444444444441977e-01,'2026-11-22 11:03:06.224756');
INSERT INTO "metric" VALUES(37,2,'train/loss',5,0.919464111328125,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(38,2,'train/lr',5,0.001,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(39,2,'train/norm_mean',5,1.11317956447601318359e+00,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(40,2,'train/norm_var',5,1.3297326600147307829e-01,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(41,2,'train/s_mu',5,1.15885508060455322265e+00,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(42,2,'train/cos_ap',5,5.50050098285020161448e-01,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(43,2,'train/cos_an',5,4.89184043253137079698e-01,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(44,2,'validation/map@r',5,6.7138924524042364883e-01,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(45,2,'validation/recall@1',5,9.77777777777777745704e-01,'2026-11-22 11:03:06.685738');
INSERT INTO "metric" VALUES(46,2,'train/loss',10,4.72927719354629516601e-01,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(47,2,'train/lr',10,0.001,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(48,2,'train/norm_mean',10,1.13946656882762908935e+00,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(49,2,'train/norm_var',10,1.29118709048671620465e-01,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(50,2,'train/s_mu',10,1.16516840457916259765e+00,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(51,2,'train/cos_ap',10,0.703438218816609,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(52,2,'train/cos_an',10,0.332132336699369,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(53,2,'validation/map@r',10,6.64740357613687882221e-01,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(54,2,'validation/recall@1',10,9.69444444444444441977e-01,'2026-11-22 11:03:06.702012');
INSERT INTO "metric" VALUES(55,2,'train/loss',15,2.38156735897064208984e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(56,2,'train/lr',15,0.001,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(57,2,'train/norm_mean',15,1.18520120158791542053e+00,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(58,2,'train/norm_var',15,1.66318395310970645883e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(59,2,'train/s_mu',15,1.15022706985473632812e+00,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(60,2,'train/cos_ap',15,7.71328786962242163305e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(61,2,'train/cos_an',15,2.0725253838946836038e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(62,2,'validation/map@r',15,6.2510816086316811635e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(63,2,'validation/recall@1',15,9.527777777777777235e-01,'2026-11-22 11:03:06.720890');
INSERT INTO "metric" VALUES(64,2,'train/loss',20,3.50885182619094848632e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(65,2,'train/lr',20,0.001,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(66,2,'train/norm_mean',20,1.1596475839614868164e+00,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(67,2,'train/norm_var',20,1.74873983406897082204e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(68,2,'train/s_mu',20,1.12198531627655029296e+00,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(69,2,'train/cos_ap',20,7.47682030185910506681e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(70,2,'train/cos_an',20,2.14770833636711261371e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(71,2,'validation/map@r',20,5.67084286887331923132e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(72,2,'validation/recall@1',20,9.33333333333333348136e-01,'2026-11-22 11:03:06.759336');
INSERT INTO "metric" VALUES(73,3,'train/loss',5,5.97912693023681640625e+00,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(74,3,'train/lr',5,0.001,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(75,3,'train/norm_mean',5,1.21633872017264366149e+00,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(76,3,'train/norm_var',5,1.48093950106602506577e-01,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(77,3,'train/s_mu',5,1.14661800861358642578e+00,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(78,3,'train/cos_ap',5,5.81629445728409466553e-01,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(79,3,'train/cos_an',5,4.24877411426862694465e-01,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(80,3,'validation/map@r',5,7.69596052456524848395e-01,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(81,3,'validation/recall@1',5,0.9625,'2026-11-22 11:03:06.844937');
INSERT INTO "metric" VALUES(82,3,'train/loss',10,4.529445648193359375e+00,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(83,3,'train/lr',10,0.001,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(84,3,'train/norm_mean',10,1.15986612811684608459e+00,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(85,3,'train/norm_var',10,1.26275411178581958848e-01,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(86,3,'train/s_mu',10,1.10677421092987060546e+00,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(87,3,'train/cos_ap',10,6.61304148194705398999e-01,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(88,3,'train/cos_an',10,5.05724979979614852609e-01,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(89,3,'validation/map@r',10,7.3613210782784443964e-01,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(90,3,'validation/recall@1',10,9.86111111111111160454e-01,'2026-11-22 11:03:06.866112');
INSERT INTO "metric" VALUES(91,3,'train/loss',15,1.11716341972351074218e+00,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(92,3,'train/lr',15,0.001,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(93,3,'train/norm_mean',15,1.33218848705291748046e+00,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(94,3,'train/norm_var',15,2.05441800565003607204e-01,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(95,3,'train/s_mu',15,1.1443634033203125e+00,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(96,3,'train/cos_ap',15,6.32057883067325243509e-01,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(97,3,'train/cos_an',15,3.83987982372007430331e-01,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(98,3,'validation/map@r',15,0.712887835031032,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(99,3,'validation/recall@1',15,9.86111111111111160454e-01,'2026-11-22 11:03:06.885585');
INSERT INTO "metric" VALUES(100,3,'train/loss',20,8.73801577836275100708e-03,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(101,3,'train/lr',20,0.001,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(102,3,'train/norm_mean',20,1.3339795917272567749e+00,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(103,3,'train/norm_var',20,2.64734660935374788159e-01,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(104,3,'train/s_mu',20,1.10466921329498291015e+00,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(105,3,'train/cos_ap',20,7.00732554414183361757e-01,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(106,3,'train/cos_an',20,4.2511761775805956276e-01,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(107,3,'validation/map@r',20,7.27991946383388821573e-01,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(108,3,'validation/recall@1',20,9.88888888888888928363e-01,'2026-11-22 11:03:06.920201');
INSERT INTO "metric" VALUES(109,4,'train/loss',5,6.92597293853759765625e+00,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(110,4,'train/lr',5,0.001,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(111,4,'train/norm_mean',5,1.10784968733787536621e+00,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(112,4,'train/norm_var',5,1.50346488399594857554e-01,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(113,4,'train/s_mu',5,1.14921486377716064453e+00,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(114,4,'train/cos_ap',5,5.17643869163076808526e-01,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(115,4,'train/cos_an',5,5.14700834671595441882e-01,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(116,4,'validation/map@r',5,7.10216491798681404112e-01,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(117,4,'validation/recall@1',5,9.86111111111111160454e-01,'2026-11-22 11:03:07.090304');
INSERT INTO "metric" VALUES(118,4,'train/loss',10,3.19524502754211425781e+00,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(119,4,'train/lr',10,0.001,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(120,4,'train/norm_mean',10,1.15349423699080944061e+00,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(121,4,'train/norm_var',10,1.23664479046267580808e-01,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(122,4,'train/s_mu',10,1.13943839073181152343e+00,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(123,4,'train/cos_ap',10,6.85542295905424814428e-01,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(124,4,'train/cos_an',10,4.54761201220797772748e-01,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(125,4,'validation/map@r',10,6.89640709755087510934e-01,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(126,4,'validation/recall@1',10,9.61111111111111138249e-01,'2026-11-22 11:03:07.134282');
INSERT INTO "metric" VALUES(127,4,'train/loss',15,1.69067609310150146484e+00,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(128,4,'train/lr',15,0.001,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(129,4,'train/norm_mean',15,1.14073109999299049377e+00,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(130,4,'train/norm_var',15,1.63559704602679739648e-01,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(131,4,'train/s_mu',15,1.12197887897491455078e+00,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(132,4,'train/cos_ap',15,7.34103865034350100415e-01,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(133,4,'train/cos_an',15,4.57903289909537269952e-01,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(134,4,'validation/map@r',15,0.63609434433797,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(135,4,'validation/recall@1',15,9.5833333333333337034e-01,'2026-11-22 11:03:07.180253');
INSERT INTO "metric" VALUES(136,4,'train/loss',20,2.406097412109375e+00,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(137,4,'train/lr',20,0.001,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(138,4,'train/norm_mean',20,1.16295313835144042968e+00,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(139,4,'train/norm_var',20,1.68256715865921169239e-01,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(140,4,'train/s_mu',20,1.10345947742462158203e+00,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(141,4,'train/cos_ap',20,6.9689492087378157592e-01,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(142,4,'train/cos_an',20,4.67615746246453356516e-01,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(143,4,'validation/map@r',20,5.86543316810704595809e-01,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(144,4,'validation/recall@1',20,9.61111111111111138249e-01,'2026-11-22 11:03:07.238757');
INSERT INTO "metric" VALUES(145,7,'train/loss',5,6.01018130779266357421e-01,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(146,7,'train/lr',5,0.001,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(147,7,'train/norm_mean',5,1.32922260090708732604e+00,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(148,7,'train/norm_var',5,1.02755492867097841802e-01,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(149,7,'train/s_mu',5,1.13521242141723632812e+00,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(150,7,'train/cos_ap',5,6.52231413310407570627e-01,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(151,7,'train/cos_an',5,0.406925678399464,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(152,7,'validation/map@r',5,5.94776105127275744877e-01,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(153,7,'validation/recall@1',5,0.975,'2026-11-22 11:03:08.560934');
INSERT INTO "metric" VALUES(154,7,'train/loss',10,6.49215459823608398437e-01,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(155,7,'train/lr',10,0.001,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(156,7,'train/norm_mean',10,1.356441546231508255e+00,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(157,7,'train/norm_var',10,6.94767954208540539084e-02,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(158,7,'train/s_mu',10,1.13310003280639648437e+00,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(159,7,'train/cos_ap',10,6.14877529156837354662e-01,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(160,7,'train/cos_an',10,3.82873877063982070989e-01,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(161,7,'validation/map@r',10,6.68595604542671750891e-01,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(162,7,'validation/recall@1',10,9.77777777777777745704e-01,'2026-11-22 11:03:08.584256');
INSERT INTO "metric" VALUES(163,7,'train/loss',15,0.37481489777565,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(164,7,'train/lr',15,0.001,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(165,7,'train/norm_mean',15,1.33953152596950531005e+00,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(166,7,'train/norm_var',15,5.7298730347705495447e-02,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(167,7,'train/s_mu',15,1.14891016483306884765e+00,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(168,7,'train/cos_ap',15,7.04359520613110579034e-01,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(169,7,'train/cos_an',15,2.88275985288837743869e-01,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(170,7,'validation/map@r',15,7.11618825666713861188e-01,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(171,7,'validation/recall@1',15,9.88888888888888928363e-01,'2026-11-22 11:03:08.603899');
INSERT INTO "metric" VALUES(172,7,'train/loss',20,3.31563740968704223632e-01,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(173,7,'train/lr',20,0.001,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(174,7,'train/norm_mean',20,1.36340379342436790466e+00,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(175,7,'train/norm_var',20,3.56744957915841945372e-02,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(176,7,'train/s_mu',20,1.16282975673675537109e+00,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(177,7,'train/cos_ap',20,7.10180012327173870723e-01,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(178,7,'train/cos_an',20,2.35071295647693828678e-01,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(179,7,'validation/map@r',20,7.45128814906533376571e-01,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(180,7,'validation/recall@1',20,9.86111111111111160454e-01,'2026-11-22 11:03:08.635533');
INSERT INTO "metric" VALUES(181,8,'train/loss',5,5.00988900661468505859e-01,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(182,8,'train/lr',5,0.002,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(183,8,'train/norm_mean',5,1.3275991976261138916e+00,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(184,8,'train/norm_var',5,9.05649757845368164055e-02,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(185,8,'train/s_mu',5,1.14432251453399658203e+00,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(186,8,'train/cos_ap',5,6.74150992004286631065e-01,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(187,8,'train/cos_an',5,3.59811040558842665237e-01,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(188,8,'validation/map@r',5,0.594260182816229,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(189,8,'validation/recall@1',5,0.975,'2026-11-22 11:03:08.705273');
INSERT INTO "metric" VALUES(190,8,'train/loss',10,4.13030564785003662109e-01,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(191,8,'train/lr',10,0.002,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(192,8,'train/norm_mean',10,1.36413345485925674438e+00,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(193,8,'train/norm_var',10,9.22695497357647331782e-02,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(194,8,'train/s_mu',10,1.13882589340209960937e+00,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(195,8,'train/cos_ap',10,6.80586298445228554676e-01,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(196,8,'train/cos_an',10,2.64830514747106282591e-01,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(197,8,'validation/map@r',10,6.89169515260293574776e-01,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(198,8,'validation/recall@1',10,9.80555555555555513613e-01,'2026-11-22 11:03:08.724349');
INSERT INTO "metric" VALUES(199,8,'train/loss',15,2.0200493931770324707e-01,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(200,8,'train/lr',15,0.002,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(201,8,'train/norm_mean',15,1.35890937596559524536e+00,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(202,8,'train/norm_var',15,6.03898503134811387438e-02,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(203,8,'train/s_mu',15,1.1432971954345703125e+00,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(204,8,'train/cos_ap',15,0.765799868559016,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(205,8,'train/cos_an',15,1.3146036199277447154e-01,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(206,8,'validation/map@r',15,7.2890547038189668072e-01,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(207,8,'validation/recall@1',15,9.91666666666666696272e-01,'2026-11-22 11:03:08.744605');
INSERT INTO "metric" VALUES(208,8,'train/loss',20,8.19762349128723144531e-02,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(209,8,'train/lr',20,0.002,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(210,8,'train/norm_mean',20,1.40867876261472702026e+00,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(211,8,'train/norm_var',20,4.98411549628263172984e-02,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(212,8,'train/s_mu',20,1.13574612140655517578e+00,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(213,8,'train/cos_ap',20,8.59707755729637423947e-01,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(214,8,'train/cos_an',20,2.40677567953295375169e-02,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(215,8,'validation/map@r',20,7.5115734912854714711e-01,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(216,8,'validation/recall@1',20,9.94444444444444464181e-01,'2026-11-22 11:03:08.780112');
INSERT INTO "metric" VALUES(217,9,'train/loss',5,0.4298115670681,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(218,9,'train/lr',5,0.003,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(219,9,'train/norm_mean',5,1.33057885244488716125e+00,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(220,9,'train/norm_var',5,8.01488605660619357617e-02,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(221,9,'train/s_mu',5,1.1500593423843383789e+00,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(222,9,'train/cos_ap',5,6.88772110564424444589e-01,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(223,9,'train/cos_an',5,3.14140237945646494388e-01,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(224,9,'validation/map@r',5,5.56319298917758775502e-01,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(225,9,'validation/recall@1',5,9.55555555555555602431e-01,'2026-11-22 11:03:08.845227');
INSERT INTO "metric" VALUES(226,9,'train/loss',10,2.66983509063720703125e-01,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(227,9,'train/lr',10,0.003,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(228,9,'train/norm_mean',10,1.38901856541633605957e+00,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(229,9,'train/norm_var',10,9.69566059173727623488e-02,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(230,9,'train/s_mu',10,1.13822722434997558593e+00,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(231,9,'train/cos_ap',10,7.37086298725900146422e-01,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(232,9,'train/cos_an',10,1.45794403322581200832e-01,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(233,9,'validation/map@r',10,0.632013258794815,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(234,9,'validation/recall@1',10,0.975,'2026-11-22 11:03:08.865242');
INSERT INTO "metric" VALUES(235,10,'train/loss',5,7.2013384103775024414e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(236,10,'train/lr',5,1.0e-09,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(237,10,'train/norm_mean',5,1.33130981028079986572e+00,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(238,10,'train/norm_var',5,1.15398413920045017633e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(239,10,'train/s_mu',5,1.12661767005920410156e+00,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(240,10,'train/cos_ap',5,6.27021877454158382825e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(241,10,'train/cos_an',5,4.52423114727012132263e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(242,10,'validation/map@r',5,5.9953076418303252737e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(243,10,'validation/recall@1',5,9.69444444444444441977e-01,'2026-11-22 11:03:08.949217');
INSERT INTO "metric" VALUES(244,10,'train/loss',10,7.76075780391693115234e-01,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(245,10,'train/lr',10,1.0e-09,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(246,10,'train/norm_mean',10,1.35625365376472473144e+00,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(247,10,'train/norm_var',10,8.34207840874787720508e-02,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(248,10,'train/s_mu',10,1.12820672988891601562e+00,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(249,10,'train/cos_ap',10,6.11482032895450444698e-01,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(250,10,'train/cos_an',10,4.72414388012534491867e-01,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(251,10,'validation/map@r',10,6.61752130954357586922e-01,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(252,10,'validation/recall@1',10,9.77777777777777745704e-01,'2026-11-22 11:03:08.968947');
INSERT INTO "metric" VALUES(253,11,'train/loss',5,7.84706413745880126953e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(254,11,'train/lr',5,0.001,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(255,11,'train/norm_mean',5,1.24560973420739173889e+00,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(256,11,'train/norm_var',5,3.27174281235765196385e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(257,11,'train/s_mu',5,1.13899183273315429687e+00,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(258,11,'train/cos_ap',5,5.73741537996610317939e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(259,11,'train/cos_an',5,4.34792608091125465374e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(260,11,'validation/map@r',5,5.13941027001730277312e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(261,11,'validation/recall@1',5,9.08333333333333325931e-01,'2026-11-22 11:03:09.546350');
INSERT INTO "metric" VALUES(262,12,'train/loss',5,1.0074100494384765625e+00,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(263,12,'train/lr',5,0.001,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(264,12,'train/norm_mean',5,1.22151348739862442016e+00,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(265,12,'train/norm_var',5,2.74094538339823112771e-01,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(266,12,'train/s_mu',5,1.15381395816802978515e+00,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(267,12,'train/cos_ap',5,4.40916383384547694301e-01,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(268,12,'train/cos_an',5,4.17321941251645067705e-01,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(269,12,'validation/map@r',5,4.73439479755089098755e-01,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(270,12,'validation/recall@1',5,9.19444444444444397568e-01,'2026-11-22 11:03:09.866305');
INSERT INTO "metric" VALUES(271,12,'train/loss',10,8.90542268753051757812e-01,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(272,12,'train/lr',10,0.001,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(273,12,'train/norm_mean',10,1.2851640600711107254e+00,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(274,12,'train/norm_var',10,0.617410864277849,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(275,12,'train/s_mu',10,1.1235523223876953125e+00,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(276,12,'train/cos_ap',10,4.43810907782288710521e-01,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(277,12,'train/cos_an',10,2.83186650480133639273e-01,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(278,12,'validation/map@r',10,4.80510930183439044505e-01,'2026-11-22 11:03:09.938355');
INSERT INTO "metric" VALUES(279,12,'validation/recall@1',10,8.88888888888888839545e-01,'2026-11-22 11:03:09.938355');
CREATE TABLE need (
	"key" VARCHAR(16) NOT NULL, 
	reads JSON NOT NULL, 
	CONSTRAINT pk_need PRIMARY KEY ("key")
);
INSERT INTO "need" VALUES('931b0c2d0d82e1f7','{"dataset": {"name": "omniglot"}, "weights": null}');
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
	error TEXT, 
	CONSTRAINT fk_outbox_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT uq_outbox_kind_sweep_id_entity UNIQUE (kind, sweep_id, entity)
);
INSERT INTO "outbox" VALUES(1,'sweep',1,1,4,0,0.0,NULL);
INSERT INTO "outbox" VALUES(2,'trial',1,1,7,0,0.0,NULL);
INSERT INTO "outbox" VALUES(8,'trial',1,2,7,0,0.0,NULL);
INSERT INTO "outbox" VALUES(14,'trial',1,3,7,0,0.0,NULL);
INSERT INTO "outbox" VALUES(20,'trial',1,4,7,0,0.0,NULL);
INSERT INTO "outbox" VALUES(24,'cell',1,0,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(30,'cell',1,1,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(35,'trial',2,5,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(36,'sweep',2,2,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(37,'trial',2,6,2,0,0.0,NULL);
INSERT INTO "outbox" VALUES(39,'cell',2,0,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(42,'sweep',3,3,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(43,'trial',3,7,2,0,0.0,NULL);
INSERT INTO "outbox" VALUES(45,'cell',3,0,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(48,'sweep',4,4,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(49,'trial',4,8,6,0,0.0,NULL);
INSERT INTO "outbox" VALUES(55,'trial',4,9,7,0,0.0,NULL);
INSERT INTO "outbox" VALUES(61,'trial',4,10,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(64,'trial',4,11,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(67,'cell',4,0,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(71,'sweep',5,5,3,0,0.0,NULL);
INSERT INTO "outbox" VALUES(73,'cell',5,0,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(75,'trial',6,13,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(76,'trial',6,16,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(77,'sweep',6,6,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(78,'sweep',7,7,1,0,0.0,NULL);
INSERT INTO "outbox" VALUES(79,'sweep',8,8,2,0,0.0,NULL);
INSERT INTO "outbox" VALUES(81,'trial',6,14,2,0,0.0,NULL);
INSERT INTO "outbox" VALUES(83,'trial',6,15,4,0,0.0,NULL);
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
INSERT INTO "request" VALUES(1,'cancel',5,NULL,'ann','2026-11-22 11:03:09.278041','2026-11-22 11:03:09.298627','1 trial cancelled',NULL);
INSERT INTO "request" VALUES(2,'pause',8,NULL,'ann','2026-11-22 11:03:09.327349','2026-11-22 11:03:09.357575','paused',NULL);
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
INSERT INTO "sweep" VALUES(1,'0d2f08b2-90ca-4055-9793-bc2a00273d68','finished','version: 1
name: finished
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
  - normface
repeat:
  seed:
  - 0
  - 1
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "finished", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}, {"label": "normface", "patch": {"loss": {"name": "normface"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "1", "patch": {"seed": 1}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',4,NULL,NULL,'01d574e36fa5778f42330651b20194e30a7197a55b18f7530c448c03b02c1853','2026-11-22 11:03:03.563551','finished','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:03.613764','2026-11-22 11:03:07.612495',NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(2,'660f1746-5c13-4184-9e89-5c3d822a6f65','failed','version: 1
name: failed
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
repeat:
  seed:
  - 0
  - 9
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "failed", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "9", "patch": {"seed": 9}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',2,NULL,NULL,'b50bb37ae6785e470b0e01ac94d059ee877bb76b8fcb40da560f626032a71ac5','2026-11-22 11:03:07.638470','failed','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:07.680020','2026-11-22 11:03:08.070762',NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(3,'a059d287-d27f-48fd-9917-46d19eb55e83','diverged','version: 1
name: diverged
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  optimizer.lr:
  - 1.0e+30
repeat:
  seed:
  - 0
tables:
  main:
    rows:
    - optimizer.lr
    metrics:
    - map@r
','{"version": 1, "name": "diverged", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"optimizer.lr": [{"when": {}, "choices": [{"label": "1e+30", "patch": {"optimizer.lr": 1e+30}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["optimizer.lr"], "columns": [], "metrics": ["map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'302175bd09210e86b07dfab7b6a2888aca3b7b3b9bc9f83db76825e59d3d356b','2026-11-22 11:03:08.085687','finished','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:08.130728','2026-11-22 11:03:08.485760',NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(4,'9485f611-0569-42a1-b90f-da93f52462b3','pruned','version: 1
name: pruned
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare: {}
repeat:
  seed:
  - 3
tables:
  main:
    rows:
    - task
    metrics:
    - map@r
tune:
  optimizer.lr:
  - 0.001
  - 0.002
  - 0.003
  - 1.0e-09
prune:
  name: median
  startup: 2
','{"version": 1, "name": "pruned", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {}, "tune": {"optimizer.lr": [{"when": {}, "choices": [{"label": "0.001", "patch": {"optimizer.lr": 0.001}}, {"label": "0.002", "patch": {"optimizer.lr": 0.002}}, {"label": "0.003", "patch": {"optimizer.lr": 0.003}}, {"label": "1e-09", "patch": {"optimizer.lr": 1e-09}}], "span": null}]}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "3", "patch": {"seed": 3}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "prune": {"name": "median", "startup": 2, "warmup": 1}, "tables": {"main": {"published": null, "rows": ["task"], "columns": [], "metrics": ["map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',4,NULL,NULL,'2ed0a32f4e264081bba43f7ca4f95b70d68cab8e6deecf3d926cc72da62c1557','2026-11-22 11:03:08.491921','finished','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:08.509543','2026-11-22 11:03:09.267314',NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(5,'4725be60-c102-4031-afc0-9efe7dfdf374','cancelled','version: 1
name: cancelled
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
repeat:
  seed:
  - 5
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "cancelled", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "5", "patch": {"seed": 5}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'f495c56d6f4fc21a71bb1710daadcc000e544dda5acd2d87dadfcd85e62ebea5','2026-11-22 11:03:09.272794','cancelled','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:09.290169','2026-11-22 11:03:09.297572',NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(6,'3435364d-39c9-433a-90f4-02fb1d09dee9','half','version: 1
name: half
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
  - normface
repeat:
  seed:
  - 0
  - 20
  - 21
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "half", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}, {"label": "normface", "patch": {"loss": {"name": "normface"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}, {"label": "20", "patch": {"seed": 20}}, {"label": "21", "patch": {"seed": 21}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',6,NULL,NULL,'9f97ff15c4dc66e1eb715264286900e8642b951a0dce301d2ee6ce4ed1c65473','2026-11-22 11:03:09.313350','running','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:09.338980',NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(7,'ca1fb84c-acb1-4577-b500-63b0ccbcaaf2','held','version: 1
name: held
recipe:
  dataset: omniglot
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
repeat:
  seed:
  - 0
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "held", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "omniglot"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "0", "patch": {"seed": 0}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'afaaba95c78ff9d0038945b599d5c172629fa44b0a6ec5838b93bd760fcab34e','2026-11-22 11:03:09.319171','running','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:09.344769',NULL,NULL,NULL,NULL,0,'no node has omniglot: on host-a: omniglot28.npz is missing: looked in /home/ann/.metricsweep/data for omniglot28.npz or omniglot-py/images_background; fetch the data set, or set METRICSWEEP_DATA (or --data) to the folder that holds it; `python -m workers data fetch omniglot` fetches it; its trials wait until it is there');
INSERT INTO "sweep" VALUES(8,'dbf1d009-55b4-4870-a412-7c0aaf64cd40','paused','version: 1
name: paused
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
repeat:
  seed:
  - 30
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "paused", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "30", "patch": {"seed": 30}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'de11ead90d75de34aa687cff0f753f8f82b760c0a04a817395137dadde86647b','2026-11-22 11:03:09.323750','paused','{"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}','2026-11-22 11:03:09.348164',NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sweep" VALUES(9,'d5c6beb0-a4db-4d41-9fe7-47d6cc52d71d','queued','version: 1
name: queued
recipe:
  dataset: digits
  backbone:
    name: mlp
    width: 16
  embedding: 8
  loss: triplet
  sampler:
    name: balanced
    classes: 4
    per_class: 4
  iterations: 20
  evaluate_every: 5
  validation:
    name: class_holdout
    folds: 3
    fold: 0
compare:
  loss:
  - triplet
repeat:
  seed:
  - 40
tables:
  main:
    rows:
    - loss
    columns: []
    metrics:
    - recall@1
    - map@r
','{"version": 1, "name": "queued", "description": "", "recipe": {"task": {"name": "retrieval"}, "head": {"name": "fc"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "optimizer": {"name": "adam"}, "schedule": {"name": "constant"}, "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "dataset": {"name": "digits"}, "backbone": {"name": "mlp", "width": 16}, "embedding": 8, "loss": {"name": "triplet"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 20, "evaluate_every": 5}, "compare": {"loss": [{"when": {}, "choices": [{"label": "triplet", "patch": {"loss": {"name": "triplet"}}}], "span": null}]}, "tune": {}, "repeat": {"seed": [{"when": {}, "choices": [{"label": "40", "patch": {"seed": 40}}], "span": null}]}, "rules": [], "select": {"metric": "map@r", "split": "validation"}, "slot": {"cpus": 1.0, "gpus": "auto", "memory_gb": null, "stall_minutes": 60.0, "retries": 1}, "slots": [], "search": {"name": "grid", "trials": null, "seed": 0, "parallel": 1, "reproduce": 0}, "tables": {"main": {"published": null, "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "unit": "percent", "decimals": 2, "bold": null, "labels": {}, "titles": {}, "show_tuned": false, "std": true, "spread": null, "center": "mean", "counts": "differ", "against": null, "test": "t", "missing": "\u2013", "diverged": "diverged", "caption": null, "selections": [], "flattery": false, "panels": null}}, "figures": {}, "fresh": false}',1,NULL,NULL,'d2eb710f320c73fb53f1eccfefaedf9037449e751aecaa1b2eb2f5a7f6e75e9d','2026-11-22 11:03:09.394027','queued',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE sweep_need (
	sweep_id INTEGER NOT NULL, 
	need VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_sweep_need PRIMARY KEY (sweep_id, need), 
	CONSTRAINT fk_sweep_need_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_need_need FOREIGN KEY(need) REFERENCES need ("key")
);
INSERT INTO "sweep_need" VALUES(7,'931b0c2d0d82e1f7');
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
	ended DATETIME, need VARCHAR(16), stamp TEXT DEFAULT '' NOT NULL, heir INTEGER, 
	CONSTRAINT uq_training_fingerprint_generation UNIQUE (fingerprint, generation), 
	CONSTRAINT uq_training_uid UNIQUE (uid)
);
INSERT INTO "training" VALUES(1,'04079b1d-b93d-4755-828a-0caf65fbd389','864fffdd99d2b40bb35366c6cf415f5fb5816f4c6ae34b88b428f9584fa2916d',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,355,0,'{"last/test/map@r": 0.41170132428579975, "last/test/recall@1": 0.7492997198879552, "last/test/recall@2": 0.8487394957983193, "last/test/recall@4": 0.9201680672268907, "last/test/recall@8": 0.9649859943977591, "last/test/r_precision": 0.5437971922072015, "last/test/nmi": 0.41738588667061877, "last/test/f1": 0.5463481186338196, "last/test/norm_mean": 0.8469312544546875, "last/test/norm_var": 0.09306199405450431, "last/test/s_mu": 7.137275316602293, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.6425270741586108, "last/validation/recall@1": 0.9694444444444444, "last/validation/recall@2": 0.9805555555555555, "last/validation/recall@4": 0.9861111111111112, "last/validation/recall@8": 0.9944444444444445, "last/validation/r_precision": 0.7129492635251602, "last/validation/nmi": 0.49541676767255904, "last/validation/f1": 0.7642456429052286, "last/validation/norm_mean": 0.6428797595202923, "last/validation/norm_var": 0.036274631392533514, "last/validation/s_mu": 5.446198798444126, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.8841718436111883, "last/train/norm_var": 0.06522179201375314, "best/test/map@r": 0.4652165426403872, "best/test/recall@1": 0.7843137254901961, "best/test/recall@2": 0.8823529411764706, "best/test/recall@4": 0.9453781512605042, "best/test/recall@8": 0.9803921568627451, "best/test/r_precision": 0.5936785049765739, "best/test/nmi": 0.5243099282040066, "best/test/f1": 0.6210199792159896, "best/test/norm_mean": 0.619533780784834, "best/test/norm_var": 0.01498067710304191, "best/test/s_mu": 5.464234321305111, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.7044934649760067, "best/validation/recall@1": 0.9555555555555556, "best/validation/recall@2": 0.9777777777777777, "best/validation/recall@4": 0.9805555555555555, "best/validation/recall@8": 0.9916666666666667, "best/validation/r_precision": 0.766444050802371, "best/validation/nmi": 0.6412253202306888, "best/validation/f1": 0.8527150813987388, "best/validation/norm_mean": 0.5506345296899477, "best/validation/norm_var": 0.010750557141638332, "best/validation/s_mu": 3.793776279071115, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.6212431954150378, "best/train/norm_var": 0.008710068976921734}',7.04493464976006733557e-01,5,1.86232410000229720026e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.856520414352417], [2, 0.9012759327888489], [3, 0.610231876373291], [4, 0.6949121952056885], [5, 0.7362486124038696], [6, 0.5552991628646851], [7, 0.854919970035553], [8, 0.597595751285553], [9, 0.38285261392593384], [10, 0.6482203602790833], [11, 0.550096333026886], [12, 0.6673294305801392], [13, 0.4588049650192261], [14, 0.6022710800170898], [15, 0.3120628595352173], [16, 0.5339590907096863], [17, 0.40328773856163025], [18, 0.4957111179828644], [19, 0.26351943612098694], [20, 0.31767070293426514]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.2787766344845295], [2, 1.246742144227028], [3, 1.1523530408740044], [4, 1.2716622427105904], [5, 1.2352186739444733], [6, 1.2093196399509907], [7, 1.2646234706044197], [8, 1.244855523109436], [9, 1.2111719846725464], [10, 1.1572167612612247], [11, 1.209262028336525], [12, 1.2237052842974663], [13, 1.1949649341404438], [14, 1.2875354811549187], [15, 1.3155952468514442], [16, 1.3141611851751804], [17, 1.212721660733223], [18, 1.2444559819996357], [19, 1.315674550831318], [20, 1.3345248810946941]], "train/norm_var": [[1, 0.22904490946665715], [2, 0.23011778303489427], [3, 0.22808784057037446], [4, 0.19513616581332985], [5, 0.1624406961423639], [6, 0.07722051256107378], [7, 0.20104781218592993], [8, 0.1909583408903348], [9, 0.23898716135417342], [10, 0.13898615249466803], [11, 0.08722891347240691], [12, 0.160251254025792], [13, 0.22290697462238643], [14, 0.12578635601513702], [15, 0.2349315832296365], [16, 0.20032570387755186], [17, 0.12857741064527128], [18, 0.1723949588001213], [19, 0.21515174488650446], [20, 0.2063933864479326]], "train/s_mu": [[1, 1.109907865524292], [2, 1.1526453495025635], [3, 1.1368316411972046], [4, 1.1719743013381958], [5, 1.1576135158538818], [6, 1.118481159210205], [7, 1.2105623483657837], [8, 1.1935839653015137], [9, 1.1936595439910889], [10, 1.1588945388793945], [11, 1.1473733186721802], [12, 1.1504747867584229], [13, 1.1621620655059814], [14, 1.1479661464691162], [15, 1.1573212146759033], [16, 1.1225881576538086], [17, 1.1149367094039917], [18, 1.2020801305770874], [19, 1.1811295747756958], [20, 1.1621037721633911]], "train/cos_ap": [[1, 0.5347827334464544], [2, 0.5272794997536848], [3, 0.680880864130395], [4, 0.5480137066328558], [5, 0.5762599540327252], [6, 0.6945100749532133], [7, 0.47047478858036706], [8, 0.5948521511136903], [9, 0.7001609718654184], [10, 0.5991048102412472], [11, 0.664973835810115], [12, 0.5901197891925184], [13, 0.6757081684707105], [14, 0.5968396270544997], [15, 0.7105522262047441], [16, 0.6463813997011497], [17, 0.7298167951867826], [18, 0.5993373828675425], [19, 0.7121552120525494], [20, 0.6837826930749303]], "train/cos_an": [[1, 0.4077733046717955], [2, 0.45650015237994096], [3, 0.4505714603691244], [4, 0.29944460495466513], [5, 0.37780783731942863], [6, 0.3901779577138616], [7, 0.36237736841207163], [8, 0.32800145604528813], [9, 0.3164473168115612], [10, 0.3643288776379896], [11, 0.3915675715811418], [12, 0.3552278742720432], [13, 0.31027911676031655], [14, 0.2896049278850059], [15, 0.18009594147225672], [16, 0.2943439797652448], [17, 0.27842178869429074], [18, 0.2541668346448775], [19, 0.16703956792212873], [20, 0.19063879251914265]], "validation/map@r": [[5, 0.7044934649760067], [10, 0.6693480378474342], [15, 0.6468581514930843], [20, 0.6425270741586108]], "validation/recall@1": [[5, 0.9555555555555556], [10, 0.9833333333333333], [15, 0.9833333333333333], [20, 0.9694444444444444]]}}',NULL,NULL,'2026-11-22 11:03:03.833957','2026-11-22 11:03:06.276869',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(2,'a680b18d-1131-45eb-88b4-9996538990d4','2b3aaab2b55537f79b07339ddfb8a7e092f2cf00a7e05105bff5aa6043092743',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,355,0,'{"last/test/map@r": 0.30182354897916175, "last/test/recall@1": 0.7352941176470589, "last/test/recall@2": 0.8613445378151261, "last/test/recall@4": 0.9313725490196079, "last/test/recall@8": 0.9663865546218487, "last/test/r_precision": 0.4510554491140001, "last/test/nmi": 0.2905666396574776, "last/test/f1": 0.45421101759395077, "last/test/norm_mean": 0.6385076621166464, "last/test/norm_var": 0.025230797770946802, "last/test/s_mu": 7.081188925200365, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.5670842868873319, "last/validation/recall@1": 0.9333333333333333, "last/validation/recall@2": 0.9611111111111111, "last/validation/recall@4": 0.975, "last/validation/recall@8": 0.9888888888888889, "last/validation/r_precision": 0.6751116764296837, "last/validation/nmi": 0.3441568719410394, "last/validation/f1": 0.7170186027027446, "last/validation/norm_mean": 0.6567694375912349, "last/validation/norm_var": 0.022579349877685676, "last/validation/s_mu": 4.991618495909324, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.717451737464546, "last/train/norm_var": 0.03289647032505052, "best/test/map@r": 0.16044935985525033, "best/test/recall@1": 0.5826330532212886, "best/test/recall@2": 0.7394957983193278, "best/test/recall@4": 0.8599439775910365, "best/test/recall@8": 0.9257703081232493, "best/test/r_precision": 0.3342906089248653, "best/test/nmi": 0.10753087859176821, "best/test/f1": 0.3174828629654789, "best/test/norm_mean": 0.5242365210497079, "best/test/norm_var": 0.0021772705991690003, "best/test/s_mu": 4.984655593183062, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.6713892452404236, "best/validation/recall@1": 0.9777777777777777, "best/validation/recall@2": 0.9861111111111112, "best/validation/recall@4": 0.9888888888888889, "best/validation/recall@8": 0.9944444444444445, "best/validation/r_precision": 0.7367152303066246, "best/validation/nmi": 0.4379213981092191, "best/validation/f1": 0.7319354262226723, "best/validation/norm_mean": 0.5355058134429984, "best/validation/norm_var": 0.0021956405600118416, "best/validation/s_mu": 3.6558903849333575, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.5313013102421292, "best/train/norm_var": 0.004999405334972394}',6.7138924524042364883e-01,5,1.20150540999020449817e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.9689877033233643], [2, 0.8134720921516418], [3, 0.6999971866607666], [4, 0.4817921817302704], [5, 0.919464111328125], [6, 0.590178370475769], [7, 0.3642709255218506], [8, 0.8314006328582764], [9, 0.7453644275665283], [10, 0.4729277193546295], [11, 0.5364354252815247], [12, 0.22438818216323853], [13, 0.6596639752388], [14, 0.43009793758392334], [15, 0.2381567358970642], [16, 0.30501440167427063], [17, 0.41166433691978455], [18, 0.2870349586009979], [19, 0.22854012250900269], [20, 0.35088518261909485]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.0720263831317425], [2, 1.0804282873868942], [3, 1.1068512946367264], [4, 1.1750447880476713], [5, 1.1131795644760132], [6, 1.1256838776171207], [7, 1.127969115972519], [8, 1.0864244475960732], [9, 1.1761675477027893], [10, 1.139466568827629], [11, 1.1116330586373806], [12, 1.2303560115396976], [13, 1.1315687708556652], [14, 1.1586879454553127], [15, 1.1852012015879154], [16, 1.2001399733126163], [17, 1.177114363759756], [18, 1.1819948367774487], [19, 1.2669780030846596], [20, 1.1596475839614868]], "train/norm_var": [[1, 0.17364185161803475], [2, 0.2182767652493573], [3, 0.10754366356028888], [4, 0.19522269536229891], [5, 0.13297326600147308], [6, 0.0869658807529303], [7, 0.1395065827684432], [8, 0.1533318094129269], [9, 0.054663178448568495], [10, 0.12911870904867162], [11, 0.1664137950707418], [12, 0.247506480074692], [13, 0.1300497983829975], [14, 0.12140946234319669], [15, 0.16631839531097065], [16, 0.12528549876810444], [17, 0.18039876975096256], [18, 0.18914493549740363], [19, 0.19234527662131506], [20, 0.17487398340689708]], "train/s_mu": [[1, 1.181981086730957], [2, 1.1666613817214966], [3, 1.1549670696258545], [4, 1.120608925819397], [5, 1.1588550806045532], [6, 1.1016160249710083], [7, 1.187787413597107], [8, 1.1593726873397827], [9, 1.1986613273620605], [10, 1.1651684045791626], [11, 1.1419318914413452], [12, 1.1720151901245117], [13, 1.1736572980880737], [14, 1.1585901975631714], [15, 1.1502270698547363], [16, 1.145755410194397], [17, 1.1116875410079956], [18, 1.1409531831741333], [19, 1.1299554109573364], [20, 1.1219853162765503]], "train/cos_ap": [[1, 0.49794873681319723], [2, 0.5371508717276509], [3, 0.6427670973130405], [4, 0.7232962178529045], [5, 0.5500500982850202], [6, 0.7178264161840849], [7, 0.7481068246336943], [8, 0.5815291848892968], [9, 0.5510392350027251], [10, 0.703438218816609], [11, 0.6669689879193063], [12, 0.778517462624943], [13, 0.6001747617326142], [14, 0.7065826185429845], [15, 0.7713287869622422], [16, 0.772251355434955], [17, 0.7373299324372947], [18, 0.7691314631575401], [19, 0.7994751305409858], [20, 0.7476820301859105]], "train/cos_an": [[1, 0.46509146026821185], [2, 0.400819734188582], [3, 0.4696548537353598], [4, 0.3681906057289989], [5, 0.4891840432531371], [6, 0.46494299902529823], [7, 0.3623272202461692], [8, 0.4755511802184645], [9, 0.39092237174396954], [10, 0.332132336699369], [11, 0.3269140108511783], [12, 0.23025265117849072], [13, 0.36058698093249103], [14, 0.3157177657368411], [15, 0.20725253838946836], [16, 0.2453499161212022], [17, 0.2505476708121324], [18, 0.22940599132893325], [19, 0.16289522546902113], [20, 0.21477083363671126]], "validation/map@r": [[5, 0.6713892452404236], [10, 0.6647403576136879], [15, 0.6251081608631681], [20, 0.5670842868873319]], "validation/recall@1": [[5, 0.9777777777777777], [10, 0.9694444444444444], [15, 0.9527777777777777], [20, 0.9333333333333333]]}}',NULL,NULL,'2026-11-22 11:03:06.658794','2026-11-22 11:03:06.787817',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(3,'cb3e87d8-5a39-40cc-8e6e-5bc4ebb43919','192e4694fd111e9adff42182f2e067f549e51b0cda3b768d9c299c20651249f6',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0, "init_std": 0.01}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 2, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,353,0,'{"last/test/map@r": 0.41714703290614996, "last/test/recall@1": 0.7507002801120448, "last/test/recall@2": 0.8613445378151261, "last/test/recall@4": 0.9327731092436975, "last/test/recall@8": 0.9677871148459384, "last/test/r_precision": 0.5481373222948993, "last/test/nmi": 0.4035134186804713, "last/test/f1": 0.5413808226043918, "last/test/norm_mean": 0.9210695876878183, "last/test/norm_var": 0.10772443780296836, "last/test/s_mu": 6.84977870384836, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.7279919463833888, "last/validation/recall@1": 0.9888888888888889, "last/validation/recall@2": 0.9916666666666667, "last/validation/recall@4": 0.9916666666666667, "last/validation/recall@8": 0.9944444444444445, "last/validation/r_precision": 0.7816345163404814, "last/validation/nmi": 0.6762844009777436, "last/validation/f1": 0.8577375122428991, "last/validation/norm_mean": 0.7081925754745801, "last/validation/norm_var": 0.03357089355564244, "last/validation/s_mu": 5.135499503081533, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.9271669321452598, "last/train/norm_var": 0.04972470344057739, "best/test/map@r": 0.45813847457404694, "best/test/recall@1": 0.7633053221288515, "best/test/recall@2": 0.8599439775910365, "best/test/recall@4": 0.9285714285714286, "best/test/recall@8": 0.9775910364145658, "best/test/r_precision": 0.5883077555804932, "best/test/nmi": 0.5176470825291994, "best/test/f1": 0.6196909381562863, "best/test/norm_mean": 0.6253169959082323, "best/test/norm_var": 0.014936319760428996, "best/test/s_mu": 5.454696893306588, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.7695960524565248, "best/validation/recall@1": 0.9625, "best/validation/recall@2": 0.9805555555555555, "best/validation/recall@4": 0.9833333333333333, "best/validation/recall@8": 0.9861111111111112, "best/validation/r_precision": 0.81742585829579, "best/validation/nmi": 0.6922151395247667, "best/validation/f1": 0.8759766225776684, "best/validation/norm_mean": 0.5573884018593365, "best/validation/norm_var": 0.010254148101355694, "best/validation/s_mu": 3.7887315955238248, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.6307877719319872, "best/train/norm_var": 0.00886570884768222}',7.69596052456524848395e-01,5,1.32269716003065695986e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 10.811907768249512], [2, 10.663495063781738], [3, 7.460635185241699], [4, 9.140596389770508], [5, 5.979126930236816], [6, 3.7338576316833496], [7, 6.109813213348389], [8, 3.7376320362091064], [9, 3.0865585803985596], [10, 4.529445648193359], [11, 2.5157546997070312], [12, 2.5524728298187256], [13, 2.5823488235473633], [14, 2.7874014377593994], [15, 1.1171634197235107], [16, 3.1059067249298096], [17, 1.4758847951889038], [18, 1.367319941520691], [19, 0.48584383726119995], [20, 0.008738015778362751]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.2787766344845295], [2, 1.242275819182396], [3, 1.15665128454566], [4, 1.258663635700941], [5, 1.2163387201726437], [6, 1.2047994881868362], [7, 1.2810819074511528], [8, 1.2689602300524712], [9, 1.2260935381054878], [10, 1.159866128116846], [11, 1.246536586433649], [12, 1.2648689895868301], [13, 1.2458124980330467], [14, 1.3143475987017155], [15, 1.3321884870529175], [16, 1.3703963048756123], [17, 1.2180410884320736], [18, 1.2849308252334595], [19, 1.3069474399089813], [20, 1.3339795917272568]], "train/norm_var": [[1, 0.22904490946665715], [2, 0.2161096467300575], [3, 0.22279183801343688], [4, 0.2006425815524148], [5, 0.1480939501066025], [6, 0.08246032043310625], [7, 0.1885350782176988], [8, 0.15985836295745984], [9, 0.20732773302075003], [10, 0.12627541117858196], [11, 0.1105357715523829], [12, 0.1752524920971681], [13, 0.18484711435362025], [14, 0.12736487948065897], [15, 0.2054418005650036], [16, 0.12453224554418452], [17, 0.1699673398741886], [18, 0.16341598281810965], [19, 0.2155920831193039], [20, 0.2647346609353748]], "train/s_mu": [[1, 1.109907865524292], [2, 1.1427406072616577], [3, 1.1256881952285767], [4, 1.1777539253234863], [5, 1.1466180086135864], [6, 1.1169021129608154], [7, 1.1878602504730225], [8, 1.1738202571868896], [9, 1.1593172550201416], [10, 1.1067742109298706], [11, 1.1103519201278687], [12, 1.1042207479476929], [13, 1.1292084455490112], [14, 1.1183733940124512], [15, 1.1443634033203125], [16, 1.0820139646530151], [17, 1.0779547691345215], [18, 1.1053400039672852], [19, 1.1105071306228638], [20, 1.104669213294983]], "train/cos_ap": [[1, 0.5347827334464544], [2, 0.5234141993062278], [3, 0.681881044535063], [4, 0.5255336223813531], [5, 0.5816294457284095], [6, 0.6800670430746614], [7, 0.46593603806531353], [8, 0.5617342787408653], [9, 0.6758086399761778], [10, 0.6613041481947054], [11, 0.6594512972533534], [12, 0.573874662538601], [13, 0.6793974193961191], [14, 0.5810349694664936], [15, 0.6320578830673252], [16, 0.6326384954166743], [17, 0.6822393829167132], [18, 0.6529629046121374], [19, 0.671634736433262], [20, 0.7007325544141834]], "train/cos_an": [[1, 0.4077733046717955], [2, 0.4678625989956971], [3, 0.48034248806892493], [4, 0.3156075935521518], [5, 0.4248774114268627], [6, 0.45070577227434255], [7, 0.41755047587549027], [8, 0.40024595710690614], [9, 0.42022557147741835], [10, 0.5057249799796149], [11, 0.48553809505274376], [12, 0.4289248054501115], [13, 0.4089022537943978], [14, 0.4186374763140163], [15, 0.38398798237200743], [16, 0.3764498558844664], [17, 0.4953504259233609], [18, 0.458869900591187], [19, 0.41287982898418646], [20, 0.42511761775805956]], "validation/map@r": [[5, 0.7695960524565248], [10, 0.7361321078278444], [15, 0.712887835031032], [20, 0.7279919463833888]], "validation/recall@1": [[5, 0.9625], [10, 0.9861111111111112], [15, 0.9861111111111112], [20, 0.9888888888888889]]}}',NULL,NULL,'2026-11-22 11:03:06.814226','2026-11-22 11:03:06.964920',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":2,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(4,'b699798d-f83e-47e1-9e1e-4958ac39fd77','86d634661403a97dd49f14cf0680b20b0f3ae7d930d9453f10b64bef4d2bed1c',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0, "init_std": 0.01}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 1, "pins": {"versions": {"task": 1, "loss": 2, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,351,0,'{"last/test/map@r": 0.25554496431186396, "last/test/recall@1": 0.7030812324929971, "last/test/recall@2": 0.834733893557423, "last/test/recall@4": 0.9089635854341737, "last/test/recall@8": 0.9635854341736695, "last/test/r_precision": 0.41821973046616895, "last/test/nmi": 0.23905131462189264, "last/test/f1": 0.4246338692356777, "last/test/norm_mean": 0.7179307695947775, "last/test/norm_var": 0.03188997672224745, "last/test/s_mu": 6.776019203317645, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.5865433168107046, "last/validation/recall@1": 0.9611111111111111, "last/validation/recall@2": 0.975, "last/validation/recall@4": 0.9861111111111112, "last/validation/recall@8": 0.9972222222222222, "last/validation/r_precision": 0.6793018835859926, "last/validation/nmi": 0.33315828370000483, "last/validation/f1": 0.7104143129091669, "last/validation/norm_mean": 0.7791853188640542, "last/validation/norm_var": 0.02958544955699095, "last/validation/s_mu": 4.733864873264807, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.7138957368882365, "last/train/norm_var": 0.02923327555588557, "best/test/map@r": 0.163831440901007, "best/test/recall@1": 0.5896358543417367, "best/test/recall@2": 0.7478991596638656, "best/test/recall@4": 0.8613445378151261, "best/test/recall@8": 0.9313725490196079, "best/test/r_precision": 0.3398227926888121, "best/test/nmi": 0.1030277809518825, "best/test/f1": 0.30903074461309016, "best/test/norm_mean": 0.5355118263502415, "best/test/norm_var": 0.0022926310322202944, "best/test/s_mu": 4.97601075584778, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.7102164917986814, "best/validation/recall@1": 0.9861111111111112, "best/validation/recall@2": 0.9888888888888889, "best/validation/recall@4": 0.9944444444444445, "best/validation/recall@8": 0.9972222222222222, "best/validation/r_precision": 0.7639086576978702, "best/validation/nmi": 0.4873718704716738, "best/validation/f1": 0.7497949138638228, "best/validation/norm_mean": 0.547355502926641, "best/validation/norm_var": 0.0021135590958094017, "best/validation/s_mu": 3.6477576305938566, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.5365399068651687, "best/train/norm_var": 0.004227589987030213}',7.10216491798681404112e-01,5,2.44565086999500636011e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 14.880050659179688], [2, 14.336669921875], [3, 8.453779220581055], [4, 5.134162902832031], [5, 6.925972938537598], [6, 6.255366802215576], [7, 5.381649494171143], [8, 5.562046527862549], [9, 6.240269184112549], [10, 3.1952450275421143], [11, 3.3661062717437744], [12, 0.8300169706344604], [13, 3.860445976257324], [14, 3.2182068824768066], [15, 1.6906760931015015], [16, 0.734211802482605], [17, 1.3576852083206177], [18, 1.9749727249145508], [19, 1.5660264492034912], [20, 2.406097412109375]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.0720263831317425], [2, 1.064659109339118], [3, 1.0975417979061604], [4, 1.1804426852613688], [5, 1.1078496873378754], [6, 1.1206898465752602], [7, 1.1265525110065937], [8, 1.0945800840854645], [9, 1.1855298914015293], [10, 1.1534942369908094], [11, 1.1057670451700687], [12, 1.2177287228405476], [13, 1.1250050850212574], [14, 1.156288769096136], [15, 1.1407310999929905], [16, 1.1956765875220299], [17, 1.175790760666132], [18, 1.1749061271548271], [19, 1.2697841562330723], [20, 1.1629531383514404]], "train/norm_var": [[1, 0.17364185161803475], [2, 0.22363836025199063], [3, 0.10621711993365958], [4, 0.21581313256376605], [5, 0.15034648839959486], [6, 0.08799800068835928], [7, 0.10549617758298888], [8, 0.18480546274956566], [9, 0.047982328608643356], [10, 0.12366447904626758], [11, 0.15679793001796363], [12, 0.32126915806523254], [13, 0.08759420248837368], [14, 0.08650578611897061], [15, 0.16355970460267974], [16, 0.08774134795510627], [17, 0.2079622789686968], [18, 0.23048362389665292], [19, 0.250547129579209], [20, 0.16825671586592117]], "train/s_mu": [[1, 1.181981086730957], [2, 1.1660515069961548], [3, 1.1592246294021606], [4, 1.1113102436065674], [5, 1.1492148637771606], [6, 1.105168104171753], [7, 1.1696947813034058], [8, 1.1418046951293945], [9, 1.1803481578826904], [10, 1.1394383907318115], [11, 1.1343233585357666], [12, 1.1640604734420776], [13, 1.1745835542678833], [14, 1.1507563591003418], [15, 1.1219788789749146], [16, 1.1412279605865479], [17, 1.1022047996520996], [18, 1.0908288955688477], [19, 1.1819771528244019], [20, 1.1034594774246216]], "train/cos_ap": [[1, 0.49794873681319723], [2, 0.522440013486538], [3, 0.6055725298898915], [4, 0.7312839925633065], [5, 0.5176438691630768], [6, 0.6507279546945334], [7, 0.7065829328831139], [8, 0.5952788885034708], [9, 0.5328659524177479], [10, 0.6855422959054248], [11, 0.6072589684719684], [12, 0.739521224205919], [13, 0.5893065370129803], [14, 0.6520394174990528], [15, 0.7341038650343501], [16, 0.7329295217872142], [17, 0.7190031586714783], [18, 0.7092298266557931], [19, 0.6939737838090912], [20, 0.6968949208737816]], "train/cos_an": [[1, 0.46509146026821185], [2, 0.4122625675124821], [3, 0.4835599862102769], [4, 0.412838345258905], [5, 0.5147008346715954], [6, 0.5181905088120698], [7, 0.4529573873720896], [8, 0.5408572645640631], [9, 0.4704328365642578], [10, 0.4547612012207978], [11, 0.46474898272242876], [12, 0.3869563488726901], [13, 0.4658361773769099], [14, 0.49730391859978607], [15, 0.45790328990953727], [16, 0.4435900780580453], [17, 0.41865750326810264], [18, 0.4614309962800222], [19, 0.36201844437024094], [20, 0.46761574624645336]], "validation/map@r": [[5, 0.7102164917986814], [10, 0.6896407097550875], [15, 0.63609434433797], [20, 0.5865433168107046]], "validation/recall@1": [[5, 0.9861111111111112], [10, 0.9611111111111111], [15, 0.9583333333333334], [20, 0.9611111111111111]]}}',NULL,NULL,'2026-11-22 11:03:07.019560','2026-11-22 11:03:07.286699',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":2,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(5,'a62c84bb-35b4-4982-a6f4-a4dc2e9b97d3','8801598b863fbee99cf2de479962581b3b5b505bc061e4bd14fce65ebdb6efca',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 9, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','failed',0,20,0,0,NULL,NULL,NULL,NULL,NULL,'ValueError: no such thing as seed 9','Traceback (most recent call last):
  File "/opt/metricsweep/orchestrator/run/attempt.py", line 105, in _attempt
    result = _train(order, workplace, place, bench, lambda progress: tell(bench.report(progress)))
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/metricsweep/orchestrator/run/attempt.py", line 149, in _train
    return train(recipe, place, report, None)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/making.py", line 20, in real
    if recipe.seed == 9: raise ValueError(''no such thing as seed 9'')
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: no such thing as seed 9
','2026-11-22 11:03:07.714685','2026-11-22 11:03:07.734361',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(6,'1ed83af7-eed1-4541-bc83-1cac9599d40a','bfb491b8d7119c6131c0f9c85e733947487d79c5c8532a454a1259299dcd0adb',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 1e+30, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',1,20,74,1,'{}',NULL,NULL,2.48076110001420602202e-02,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": [], "curves": {"train/loss": [[1, 0.856520414352417]], "train/lr": [[1, 1e+30]], "train/norm_mean": [[1, 1.2787766344845295]], "train/norm_var": [[1, 0.22904490946665715]], "train/s_mu": [[1, 1.109907865524292]], "train/cos_ap": [[1, 0.5347827334464544]], "train/cos_an": [[1, 0.4077733046717955]]}}',NULL,NULL,'2026-11-22 11:03:08.160656','2026-11-22 11:03:08.195763',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(7,'8e03dcca-2ad7-4795-8071-98395bcf288f','46273694077da1c7d98b84d70950b4bb5b2d68abc577b72cc11b625e40b15695',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 3, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,354,0,'{"last/test/map@r": 0.38156771971642467, "last/test/recall@1": 0.7801120448179272, "last/test/recall@2": 0.8739495798319328, "last/test/recall@4": 0.9341736694677871, "last/test/recall@8": 0.969187675070028, "last/test/r_precision": 0.5059509461026481, "last/test/nmi": 0.3041382029729409, "last/test/f1": 0.4940647371963532, "last/test/norm_mean": 0.8701823925604674, "last/test/norm_var": 0.04061914885799852, "last/test/s_mu": 6.719446811915828, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.7451288149065334, "last/validation/recall@1": 0.9861111111111112, "last/validation/recall@2": 0.9972222222222222, "last/validation/recall@4": 0.9972222222222222, "last/validation/recall@8": 1.0, "last/validation/r_precision": 0.7905971134070676, "last/validation/nmi": 0.5605797919542695, "last/validation/f1": 0.8326172268842389, "last/validation/norm_mean": 0.8589780242906676, "last/validation/norm_var": 0.017988405520515234, "last/validation/s_mu": 4.736061947753917, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.8957893850068004, "last/train/norm_var": 0.02361694643365666, "best/test/map@r": 0.38156771971642467, "best/test/recall@1": 0.7801120448179272, "best/test/recall@2": 0.8739495798319328, "best/test/recall@4": 0.9341736694677871, "best/test/recall@8": 0.969187675070028, "best/test/r_precision": 0.5059509461026481, "best/test/nmi": 0.3041382029729409, "best/test/f1": 0.4940647371963532, "best/test/norm_mean": 0.8701823925604674, "best/test/norm_var": 0.04061914885799852, "best/test/s_mu": 6.719446811915828, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.7451288149065334, "best/validation/recall@1": 0.9861111111111112, "best/validation/recall@2": 0.9972222222222222, "best/validation/recall@4": 0.9972222222222222, "best/validation/recall@8": 1.0, "best/validation/r_precision": 0.7905971134070676, "best/validation/nmi": 0.5605797919542695, "best/validation/f1": 0.8326172268842389, "best/validation/norm_mean": 0.8589780242906676, "best/validation/norm_var": 0.017988405520515234, "best/validation/s_mu": 4.736061947753917, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.8957893850068004, "best/train/norm_var": 0.02361694643365666}',7.45128814906533376571e-01,20,1.08934560001216595992e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.6442655324935913], [2, 0.6279049515724182], [3, 0.5831514596939087], [4, 0.6517657041549683], [5, 0.6010181307792664], [6, 0.7551277279853821], [7, 0.5189908146858215], [8, 0.6046497225761414], [9, 0.4032038748264313], [10, 0.6492154598236084], [11, 0.478115975856781], [12, 0.4593682289123535], [13, 0.3487565219402313], [14, 0.5320432186126709], [15, 0.37481489777565], [16, 0.3726877272129059], [17, 0.47808483242988586], [18, 0.29948538541793823], [19, 0.36284753680229187], [20, 0.3315637409687042]], "train/lr": [[1, 0.001], [2, 0.001], [3, 0.001], [4, 0.001], [5, 0.001], [6, 0.001], [7, 0.001], [8, 0.001], [9, 0.001], [10, 0.001], [11, 0.001], [12, 0.001], [13, 0.001], [14, 0.001], [15, 0.001], [16, 0.001], [17, 0.001], [18, 0.001], [19, 0.001], [20, 0.001]], "train/norm_mean": [[1, 1.3447195701301098], [2, 1.3650898821651936], [3, 1.3653252124786377], [4, 1.2498142272233963], [5, 1.3292226009070873], [6, 1.351039346307516], [7, 1.2811529524624348], [8, 1.3423435166478157], [9, 1.3138856552541256], [10, 1.3564415462315083], [11, 1.4039224721491337], [12, 1.3556263856589794], [13, 1.4016711004078388], [14, 1.3225522711873055], [15, 1.3395315259695053], [16, 1.340305507183075], [17, 1.3414470478892326], [18, 1.324180331081152], [19, 1.3525626063346863], [20, 1.363403793424368]], "train/norm_var": [[1, 0.08393557703411361], [2, 0.05843141373477243], [3, 0.08512286804900526], [4, 0.04958524568928557], [5, 0.10275549286709784], [6, 0.08987217656144939], [7, 0.0539679371420748], [8, 0.11470983968672091], [9, 0.049576053876984695], [10, 0.06947679542085405], [11, 0.08131757329935405], [12, 0.1257188026693096], [13, 0.1336960885651256], [14, 0.07238772010455766], [15, 0.057298730347705495], [16, 0.06175788147560013], [17, 0.06818308654027652], [18, 0.055406145075508534], [19, 0.03378690041211918], [20, 0.035674495791584195]], "train/s_mu": [[1, 1.1545350551605225], [2, 1.132159948348999], [3, 1.1337640285491943], [4, 1.1467732191085815], [5, 1.1352124214172363], [6, 1.148665189743042], [7, 1.1403999328613281], [8, 1.1674649715423584], [9, 1.145256519317627], [10, 1.1331000328063965], [11, 1.1844054460525513], [12, 1.1589678525924683], [13, 1.1581017971038818], [14, 1.1604160070419312], [15, 1.1489101648330688], [16, 1.190418004989624], [17, 1.1528452634811401], [18, 1.188951849937439], [19, 1.1402919292449951], [20, 1.1628297567367554]], "train/cos_ap": [[1, 0.6454496886175419], [2, 0.6604150134421305], [3, 0.6942202864636866], [4, 0.6798302587122173], [5, 0.6522314133104076], [6, 0.5737632164434522], [7, 0.7080381134156414], [8, 0.6397762374821959], [9, 0.7383322970993694], [10, 0.6148775291568374], [11, 0.6503395395002559], [12, 0.6949189786268594], [13, 0.7180906966446896], [14, 0.6415992741582295], [15, 0.7043595206131106], [16, 0.6905310133195859], [17, 0.6526868832041995], [18, 0.731281143745743], [19, 0.7219403572962441], [20, 0.7101800123271739]], "train/cos_an": [[1, 0.438291413900507], [2, 0.4451678010236784], [3, 0.4522580077500868], [4, 0.48896661438300754], [5, 0.406925678399464], [6, 0.3973051280015823], [7, 0.4240165028279952], [8, 0.38893815675428905], [9, 0.37521703423376845], [10, 0.38287387706398207], [11, 0.3242151050955653], [12, 0.31914658459637196], [13, 0.2620069283172038], [14, 0.3403435205422946], [15, 0.28827598528883774], [16, 0.288428026722855], [17, 0.2873788575702607], [18, 0.25393877915332896], [19, 0.25033124396138207], [20, 0.23507129564769383]], "validation/map@r": [[5, 0.5947761051272757], [10, 0.6685956045426718], [15, 0.7116188256667139], [20, 0.7451288149065334]], "validation/recall@1": [[5, 0.975], [10, 0.9777777777777777], [15, 0.9888888888888889], [20, 0.9861111111111112]]}}',NULL,NULL,'2026-11-22 11:03:08.524729','2026-11-22 11:03:08.644077',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(8,'fe5d1e5e-f7f3-45f0-abf6-76c02a3072bd','eca4fc0297eeff992ff5a8dc2bb896929c714b0ae1b2f075352853cd7f127c36',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.002, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 3, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','finished',20,20,353,0,'{"last/test/map@r": 0.39834848354222274, "last/test/recall@1": 0.7969187675070029, "last/test/recall@2": 0.8809523809523809, "last/test/recall@4": 0.927170868347339, "last/test/recall@8": 0.9677871148459384, "last/test/r_precision": 0.5243230169779504, "last/test/nmi": 0.37665922606053653, "last/test/f1": 0.5215112990144997, "last/test/norm_mean": 0.788277430110285, "last/test/norm_var": 0.042120420388364645, "last/test/s_mu": 7.044755538844965, "last/test/s_mu_upper": 9.447221813845593, "last/validation/map@r": 0.7511573491285471, "last/validation/recall@1": 0.9944444444444445, "last/validation/recall@2": 0.9972222222222222, "last/validation/recall@4": 0.9972222222222222, "last/validation/recall@8": 0.9972222222222222, "last/validation/r_precision": 0.798895287740217, "last/validation/nmi": 0.7173029595347145, "last/validation/f1": 0.904569975816953, "last/validation/norm_mean": 0.7841508116159174, "last/validation/norm_var": 0.013051603617298034, "last/validation/s_mu": 4.969437482168232, "last/validation/s_mu_upper": 6.708203932499369, "last/train/norm_mean": 0.9470025446899699, "last/train/norm_var": 0.034868551552643436, "best/test/map@r": 0.39834848354222274, "best/test/recall@1": 0.7969187675070029, "best/test/recall@2": 0.8809523809523809, "best/test/recall@4": 0.927170868347339, "best/test/recall@8": 0.9677871148459384, "best/test/r_precision": 0.5243230169779504, "best/test/nmi": 0.37665922606053653, "best/test/f1": 0.5215112990144997, "best/test/norm_mean": 0.788277430110285, "best/test/norm_var": 0.042120420388364645, "best/test/s_mu": 7.044755538844965, "best/test/s_mu_upper": 9.447221813845593, "best/validation/map@r": 0.7511573491285471, "best/validation/recall@1": 0.9944444444444445, "best/validation/recall@2": 0.9972222222222222, "best/validation/recall@4": 0.9972222222222222, "best/validation/recall@8": 0.9972222222222222, "best/validation/r_precision": 0.798895287740217, "best/validation/nmi": 0.7173029595347145, "best/validation/f1": 0.904569975816953, "best/validation/norm_mean": 0.7841508116159174, "best/validation/norm_var": 0.013051603617298034, "best/validation/s_mu": 4.969437482168232, "best/validation/s_mu_upper": 6.708203932499369, "best/train/norm_mean": 0.9470025446899699, "best/train/norm_var": 0.034868551552643436}',7.5115734912854714711e-01,20,1.01233590001356787979e-01,'{"provenance": {"versions": {"metricsweep": "0.1.0", "torch": "2.15.0", "numpy": "2.4.6", "scikit-learn": "1.9.1", "faiss-cpu": "1.15.1", "pytorch-metric-learning": "2.9.0", "python": "3.11.7"}, "device": "cpu", "device_name": "AMD EPYC", "cuda": null, "threads": 1, "host": "host-a", "platform": "Linux-6.18.44-fc-v509-x86_64-with-glibc2.36", "git_commit": "59d5504c0f70c56fd5dedc3ba0eb6338ddd8666e", "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}, "artifacts": ["best.pt"], "curves": {"train/loss": [[1, 0.6442655324935913], [2, 0.594143807888031], [3, 0.5355820059776306], [4, 0.5889822840690613], [5, 0.5009889006614685], [6, 0.6266148090362549], [7, 0.3377031087875366], [8, 0.3723585903644562], [9, 0.271697461605072], [10, 0.41303056478500366], [11, 0.2646782696247101], [12, 0.3589189052581787], [13, 0.1254519820213318], [14, 0.3236454427242279], [15, 0.20200493931770325], [16, 0.12053795903921127], [17, 0.2597888112068176], [18, 0.1616583913564682], [19, 0.1643718034029007], [20, 0.08197623491287231]], "train/lr": [[1, 0.002], [2, 0.002], [3, 0.002], [4, 0.002], [5, 0.002], [6, 0.002], [7, 0.002], [8, 0.002], [9, 0.002], [10, 0.002], [11, 0.002], [12, 0.002], [13, 0.002], [14, 0.002], [15, 0.002], [16, 0.002], [17, 0.002], [18, 0.002], [19, 0.002], [20, 0.002]], "train/norm_mean": [[1, 1.3447195701301098], [2, 1.3667991682887077], [3, 1.3543339110910892], [4, 1.2470921650528908], [5, 1.327599197626114], [6, 1.3605968952178955], [7, 1.3033933900296688], [8, 1.359154537320137], [9, 1.3333687372505665], [10, 1.3641334548592567], [11, 1.413959812372923], [12, 1.3419378846883774], [13, 1.4219220764935017], [14, 1.3295548185706139], [15, 1.3589093759655952], [16, 1.374535545706749], [17, 1.3666168563067913], [18, 1.3832720555365086], [19, 1.3543566055595875], [20, 1.408678762614727]], "train/norm_var": [[1, 0.08393557703411361], [2, 0.05638658768854292], [3, 0.09066029840790965], [4, 0.04270247757622764], [5, 0.09056497578453682], [6, 0.0939176128675352], [7, 0.060803870827973644], [8, 0.11132817721611521], [9, 0.06190817694743376], [10, 0.09226954973576473], [11, 0.08068876920056546], [12, 0.11023101083286702], [13, 0.11934870658599564], [14, 0.09370338965723272], [15, 0.06038985031348114], [16, 0.038072904313734446], [17, 0.07144918935299238], [18, 0.052821694482620724], [19, 0.055908766860430205], [20, 0.04984115496282632]], "train/s_mu": [[1, 1.1545350551605225], [2, 1.1327852010726929], [3, 1.1414393186569214], [4, 1.153408408164978], [5, 1.1443225145339966], [6, 1.1631059646606445], [7, 1.1523337364196777], [8, 1.1874949932098389], [9, 1.1457011699676514], [10, 1.1388258934020996], [11, 1.1965060234069824], [12, 1.1539443731307983], [13, 1.1454764604568481], [14, 1.1724151372909546], [15, 1.1432971954345703], [16, 1.1998369693756104], [17, 1.143665075302124], [18, 1.1781766414642334], [19, 1.137944221496582], [20, 1.1357461214065552]], "train/cos_ap": [[1, 0.6454496886175419], [2, 0.6717313286235672], [3, 0.7013750311256235], [4, 0.68316473715534], [5, 0.6741509920042866], [6, 0.6011677136940223], [7, 0.745044161894643], [8, 0.7050562801431276], [9, 0.7641361718203915], [10, 0.6805862984452286], [11, 0.7121262653618925], [12, 0.7226892843719024], [13, 0.8074321996783285], [14, 0.7056996276314637], [15, 0.765799868559016], [16, 0.7730223530560187], [17, 0.7277433874281064], [18, 0.7661043553802042], [19, 0.7966984525785173], [20, 0.8597077557296374]], "train/cos_an": [[1, 0.438291413900507], [2, 0.43460145080687235], [3, 0.4321559252523361], [4, 0.4539129900268861], [5, 0.35981104055884267], [6, 0.32887831977845466], [7, 0.3167178750715682], [8, 0.28690453703506374], [9, 0.2776351315066328], [10, 0.2648305147471063], [11, 0.20513419347097014], [12, 0.22357792044312608], [13, 0.10757806826678946], [14, 0.19878477517005808], [15, 0.13146036199277447], [16, 0.10242718343490824], [17, 0.12001642557411145], [18, 0.06690757335258961], [19, 0.09439909642352762], [20, 0.024067756795329538]], "validation/map@r": [[5, 0.594260182816229], [10, 0.6891695152602936], [15, 0.7289054703818967], [20, 0.7511573491285471]], "validation/recall@1": [[5, 0.975], [10, 0.9805555555555555], [15, 0.9916666666666667], [20, 0.9944444444444445]]}}',NULL,NULL,'2026-11-22 11:03:08.678319','2026-11-22 11:03:08.788051',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(9,'787050bf-9467-4be2-904f-05c814e73300','089e72433ca74d6f2cb510e4da05075731db9b3711eea64247e9c4f31f23a37d',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.003, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 3, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','pruned',10,20,172,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 11:03:08.818064','2026-11-22 11:03:08.880838',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(10,'d62c78ab-59dc-475d-a5dd-e231755be573','0ee54c9950f8ded53177382733f37a0eae32e545b893171788a67c26560d4960',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 1e-09, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 3, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','pruned',10,20,175,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 11:03:08.913851','2026-11-22 11:03:08.980361',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(11,'f9e0d20c-f773-4674-95fa-7c1ca6b1c0d5','6a687e9d4a3cbbf61b153da75849c2cd85084af07874676433d2cc8df429b1d1',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 5, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','cancelled',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 11:03:09.296671',NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(12,'9a3ea8c0-6adb-41bc-b17a-44420357ed27','387022dd6246fd299a85c56800ed6fbe3a3d34db5e021758f090c03f31d9212e',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 20, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','running',8,20,101,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 11:03:09.416082',NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(13,'c621d6a4-aeb2-482d-a749-588bc9c19a1d','5e266aabbf757a4f35da7800c51ee514dbea92dd4ea727db9ef6555bd51c3891',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 21, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',10,20,174,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 11:03:09.419585',NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(14,'50388e78-f5bb-49af-8fa9-5fd7e77e7b1c','e9173729285d2d6771f0301c07792520e563dc5ce4bbdd3a5eceb9ca621de3dd',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0, "init_std": 0.01}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 20, "pins": {"versions": {"task": 1, "loss": 2, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":2,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(15,'1c710f6f-b702-4dbe-a3b0-9e6b2fd8a6af','21b4f7963accc7b6836830e70f39a90f34a29e6881a370e7e85a5882b9bf0627',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "normface", "scale": 64.0, "init_std": 0.01}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 21, "pins": {"versions": {"task": 1, "loss": 2, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"normface","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":2,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(16,'b1569e6b-6538-4f2d-8de6-3b75f969d88c','2d01a246e41839954687edf4b47d3a264cd8dc2f8cd5ae9f70686c5e6fdf346e',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "omniglot"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 0, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:c50f2237111b05736fa7396766846bcabfc4400d13c5d99947509df94a88b9c5", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'931b0c2d0d82e1f7','{"manifest":"sha256:c50f2237111b05736fa7396766846bcabfc4400d13c5d99947509df94a88b9c5","metric":"map@r","parts":{"backbone":"mlp","dataset":"omniglot","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
INSERT INTO "training" VALUES(17,'48933586-f50c-4e81-8037-56aa6f4831c0','2f14787eba0482810d1e8fec7aeb3904977157a91a8246805351002bdc369d70',1,'{"version": 1, "task": {"name": "retrieval"}, "dataset": {"name": "digits"}, "augment": "none", "crop": null, "backbone": {"name": "mlp", "width": 16, "depth": 2}, "head": {"name": "fc", "init": "default"}, "embedding": 8, "loss": {"name": "triplet", "margin": 1.0, "over": "all"}, "regularizer": {"name": "none"}, "eta_schedule": {"name": "constant"}, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"}, "iterations": 20, "epochs": null, "evaluate_every": 5, "patience": null, "warmup": 0, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": null, "clip_norm": null, "precision": "none", "channels_last": false, "compile": false, "figures": [], "validation": {"name": "class_holdout", "folds": 3, "fold": 0}, "select": {"metric": "map@r", "split": "validation"}, "seed": 30, "pins": {"versions": {"task": 1, "loss": 1, "regularizer": 1, "dataset": 1, "backbone": 1, "head": 1, "sampler": 1, "optimizer": 1, "schedule": 1, "eta_schedule": 1, "metric.map": 2, "metric.r_precision": 2, "metric.recall": 2}, "manifest": "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc", "weights": null}}','waiting',0,20,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"manifest":"sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc","metric":"map@r","parts":{"backbone":"mlp","dataset":"digits","eta_schedule":"constant","head":"fc","loss":"triplet","optimizer":"adam","regularizer":"none","sampler":"balanced","schedule":"constant","task":"retrieval"},"precision":"none","versions":{"backbone":1,"dataset":1,"eta_schedule":1,"head":1,"loss":1,"metric.map":2,"metric.r_precision":2,"metric.recall":2,"optimizer":1,"regularizer":1,"sampler":1,"schedule":1,"task":1}}',NULL);
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
	mlflow_point INTEGER NOT NULL, slot JSON, reason TEXT, mlflow_left VARCHAR, 
	CONSTRAINT fk_trial_sweep_id_cell_candidate FOREIGN KEY(sweep_id, cell, candidate) REFERENCES candidate (sweep_id, cell, candidate), 
	CONSTRAINT fk_trial_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id), 
	CONSTRAINT fk_trial_training_id FOREIGN KEY(training_id) REFERENCES training (id), 
	CONSTRAINT uq_trial_sweep_id_cell_candidate_repeat UNIQUE (sweep_id, cell, candidate, repeat), 
	CONSTRAINT uq_trial_sweep_id_position UNIQUE (sweep_id, position), 
	CONSTRAINT uq_trial_uid UNIQUE (uid)
);
INSERT INTO "trial" VALUES(1,'9585596c-2c14-538a-b7a0-16cf55f41ecb',1,0,0,0,0,'{"seed": "0"}',1,'finished',0,0,'2026-11-22 11:03:03.833957','2026-11-22 11:03:06.276869',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(2,'ca647d9d-14d6-5741-9ed2-d4978c9a36bf',1,0,0,1,1,'{"seed": "1"}',2,'finished',0,0,'2026-11-22 11:03:06.658794','2026-11-22 11:03:06.787817',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(3,'9e47d6ac-910a-59d9-be60-924aece6e845',1,1,0,0,2,'{"seed": "0"}',3,'finished',0,0,'2026-11-22 11:03:06.814226','2026-11-22 11:03:06.964920',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(4,'a2bb9382-31b4-52e8-bea7-84e56deef20b',1,1,0,1,3,'{"seed": "1"}',4,'finished',0,0,'2026-11-22 11:03:07.019560','2026-11-22 11:03:07.286699',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(5,'137135bc-e843-596e-ac12-070ab89a81f1',2,0,0,0,0,'{"seed": "0"}',1,'finished',1,0,'2026-11-22 11:03:07.682183','2026-11-22 11:03:07.682183',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(6,'87942dc9-ad00-50dd-929a-e075f9684757',2,0,0,1,1,'{"seed": "9"}',5,'failed',0,0,'2026-11-22 11:03:07.714685','2026-11-22 11:03:07.734361',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(7,'beee498d-4ccb-5fe4-bddc-56198f198ed7',3,0,0,0,0,'{"seed": "0"}',6,'finished',0,1,'2026-11-22 11:03:08.160656','2026-11-22 11:03:08.195763',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(8,'19a8f4e3-24da-511f-995f-8005c5a0ee0d',4,0,0,0,0,'{"seed": "3"}',7,'finished',0,0,'2026-11-22 11:03:08.524729','2026-11-22 11:03:08.644077',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(9,'0f4d1e7b-87dd-5276-ba78-b640df5f100c',4,0,1,0,1,'{"seed": "3"}',8,'finished',0,0,'2026-11-22 11:03:08.678319','2026-11-22 11:03:08.788051',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(10,'3dbc491a-67f1-5678-8456-f0ba3685ca46',4,0,2,0,2,'{"seed": "3"}',9,'pruned',0,0,'2026-11-22 11:03:08.818064','2026-11-22 11:03:08.869846',NULL,0,NULL,'pruned after evaluation 2: validation/map@r 0.632; its best is 0.632, the median of 2 peers 0.6789',NULL);
INSERT INTO "trial" VALUES(11,'cac8d651-4502-5d8d-a0c2-2b66be883b96',4,0,3,0,3,'{"seed": "3"}',10,'pruned',0,0,'2026-11-22 11:03:08.913851','2026-11-22 11:03:08.972383',NULL,0,NULL,'pruned after evaluation 2: validation/map@r 0.6618; its best is 0.6618, the median of 2 peers 0.6789',NULL);
INSERT INTO "trial" VALUES(12,'bfbc350a-833b-5dea-bb25-6a96fb39f099',5,0,0,0,0,'{"seed": "5"}',11,'cancelled',0,0,NULL,'2026-11-22 11:03:09.296006',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(13,'edf2e1c9-600f-5ccc-a56e-104ed3b426e0',6,0,0,0,0,'{"seed": "0"}',1,'finished',1,0,'2026-11-22 11:03:09.340403','2026-11-22 11:03:09.340403',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(14,'15126edd-41f7-578a-a916-ee1b738f86ee',6,0,0,1,1,'{"seed": "20"}',12,'running',0,0,'2026-11-22 11:03:09.416082',NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(15,'27572f76-d05e-5347-8949-04eef339e173',6,0,0,2,2,'{"seed": "21"}',13,'waiting',0,0,'2026-11-22 11:03:09.419585',NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(16,'8635c79d-ea67-52cb-baaa-6dbb68607261',6,1,0,0,3,'{"seed": "0"}',3,'finished',1,0,'2026-11-22 11:03:09.340403','2026-11-22 11:03:09.340403',NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(17,'0eb44090-ee12-52ed-84c9-6f0773922e65',6,1,0,1,4,'{"seed": "20"}',14,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(18,'6bda2a4f-19ab-5b72-b642-9cb4bdf89bcf',6,1,0,2,5,'{"seed": "21"}',15,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(19,'59ca927f-213c-5bc4-8ecc-dd1a9fefc568',7,0,0,0,0,'{"seed": "0"}',16,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "trial" VALUES(20,'bb7de7f5-fabf-59d9-a797-48f10196a857',8,0,0,0,0,'{"seed": "30"}',17,'waiting',0,0,NULL,NULL,NULL,0,NULL,NULL,NULL);
CREATE INDEX ix_sweep_state ON sweep (state);
CREATE INDEX ix_attempt_state ON attempt (state);
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('request',2);
INSERT INTO "sqlite_sequence" VALUES('sweep',9);
INSERT INTO "sqlite_sequence" VALUES('training',17);
INSERT INTO "sqlite_sequence" VALUES('trial',20);
INSERT INTO "sqlite_sequence" VALUES('outbox',86);
INSERT INTO "sqlite_sequence" VALUES('attempt',12);
INSERT INTO "sqlite_sequence" VALUES('metric',279);
COMMIT;
