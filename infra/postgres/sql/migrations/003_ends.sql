-- Schema 3: what ended, by time, and what people took care of. Programs of schema 2 write neither.

-- Counters that the write which ends a job adds to; see core/ends.py. Of all jobs where the tenant is '': those are the
-- sum over several slots, so that connections seldom wait for each other.
CREATE TABLE ade.ends (
  tenant   text COLLATE "C" NOT NULL,
  workflow text COLLATE "C" NOT NULL,
  at       float8 NOT NULL, -- when the stretch of time begins
  slot     smallint NOT NULL,
  files    bigint NOT NULL,
  failed   bigint NOT NULL,
  rows     bigint NOT NULL,
  wrong    bigint NOT NULL,
  drifted  bigint NOT NULL,
  delay0   bigint NOT NULL,
  delay1   bigint NOT NULL,
  delay2   bigint NOT NULL,
  delay3   bigint NOT NULL,
  delay4   bigint NOT NULL,
  delay5   bigint NOT NULL,
  delay6   bigint NOT NULL,
  last_at  float8 NOT NULL,
  last_job text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, workflow, at, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ends_at ON ade.ends (at) WHERE tenant <> '';

CREATE TABLE ade.resolutions (
  what   text COLLATE "C" NOT NULL PRIMARY KEY,
  until  float8 NOT NULL, -- what happened up to then is taken care of
  tenant text COLLATE "C" NOT NULL,
  at     float8 NOT NULL,
  by     text NOT NULL,
  note   text NOT NULL
);
