-- Schema 1: the job table, the work queue and what stands beside them.
--
-- Written for the schema "ade"; the program puts the schema of the URL in its place. Texts compare byte by byte
-- (COLLATE "C"), so that an upgrade of the system's collations breaks no index. Times are seconds since the epoch.

-- == The job table ==================================================================================================

CREATE TABLE ade.jobs (
  job_id     text COLLATE "C" NOT NULL PRIMARY KEY,
  tenant     text COLLATE "C" NOT NULL,
  workflow   text COLLATE "C" NOT NULL,
  line       text COLLATE "C" NOT NULL, -- jobs of one line replace each other
  state      text COLLATE "C" NOT NULL,
  created_at float8 NOT NULL,
  wake_at    float8,                    -- when the janitor should look; see core/chores.py
  resting    boolean NOT NULL,          -- only to expire or to forget it
  rev        bigint NOT NULL,
  writer     bigint NOT NULL,           -- names the call that wrote this rev: it knows its own work when an answer was lost
  doc        text NOT NULL              -- the whole record, JSON
) WITH (
  fillfactor = 70,                      -- a row is written about six times: room for the next version on the same page
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1
);
-- A line may be longer than an index entry, and is only ever asked for whole.
CREATE INDEX jobs_line ON ade.jobs (hashtextextended(line, 0));
CREATE INDEX jobs_created ON ade.jobs (created_at, job_id);
CREATE INDEX jobs_tenant ON ade.jobs (tenant, created_at, job_id);
-- Most rows have succeeded or expired: those two states are found in the order of creation and need no entries here.
CREATE INDEX jobs_state ON ade.jobs (state, created_at, job_id) WHERE state NOT IN ('SUCCEEDED', 'EXPIRED');
CREATE INDEX jobs_running ON ade.jobs (tenant, workflow) WHERE state = 'RUNNING';
CREATE INDEX jobs_attention ON ade.jobs (wake_at, job_id) WHERE wake_at IS NOT NULL AND NOT resting;
CREATE INDEX jobs_outdated ON ade.jobs (wake_at, job_id) WHERE wake_at IS NOT NULL AND resting;

-- How many jobs of a tenant are in a state, kept by a trigger. Each is the sum over 16 slots: connections count in
-- different ones, so that they seldom wait for each other. A single slot may be below zero.
CREATE TABLE ade.tallies (
  tenant text COLLATE "C" NOT NULL,
  state  text COLLATE "C" NOT NULL,
  slot   smallint NOT NULL,
  n      bigint NOT NULL,
  PRIMARY KEY (tenant, state, slot)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- SECURITY DEFINER: whoever may write a job need not be able to write the tallies by hand.
CREATE FUNCTION ade.tally() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_slot smallint := pg_backend_pid() % 16;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO ade.tallies AS t (tenant, state, slot, n)
    SELECT NEW.tenant, v.state, v_slot, v.n FROM (VALUES (OLD.state, -1), (NEW.state, 1)) AS v (state, n)
    ORDER BY v.state COLLATE "C" -- everybody in the same order, so that no two wait for each other
    ON CONFLICT (tenant, state, slot) DO UPDATE SET n = t.n + excluded.n;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO ade.tallies AS t (tenant, state, slot, n) VALUES (NEW.tenant, NEW.state, v_slot, 1)
    ON CONFLICT (tenant, state, slot) DO UPDATE SET n = t.n + 1;
  ELSE
    INSERT INTO ade.tallies AS t (tenant, state, slot, n) VALUES (OLD.tenant, OLD.state, v_slot, -1)
    ON CONFLICT (tenant, state, slot) DO UPDATE SET n = t.n - 1;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER tally_rows AFTER INSERT OR DELETE ON ade.jobs FOR EACH ROW EXECUTE FUNCTION ade.tally();
CREATE TRIGGER tally_states AFTER UPDATE OF state ON ade.jobs FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION ade.tally();

CREATE TABLE ade.pauses (
  tenant   text COLLATE "C" NOT NULL, -- '' stands for all
  workflow text COLLATE "C" NOT NULL,
  since    float8 NOT NULL,
  by       text NOT NULL,
  PRIMARY KEY (tenant, workflow)
);

CREATE TABLE ade.leases (
  name    text COLLATE "C" NOT NULL PRIMARY KEY,
  owner   text NOT NULL,
  expires float8 NOT NULL
) WITH (fillfactor = 50);

-- The greatest fence of the rows of a tenant that were removed: what comes after them starts above it.
CREATE TABLE ade.fences (
  tenant text COLLATE "C" NOT NULL PRIMARY KEY,
  fence  bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE ade.generations (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  n    bigint NOT NULL
) WITH (fillfactor = 50);

-- Insert a row if its id is free, and with it its message if one is wanted (p_send): both
-- or neither. `p_floor` is the fence that the caller started it above; where a row with a greater one was removed,
-- nothing is inserted and error AD001 tells that fence. It is read after the insert, so that it knows of every row that
-- had to go before this one could come.
CREATE FUNCTION ade.add_job(
  p_id text, p_tenant text, p_workflow text, p_line text, p_created float8, p_state text, p_wake float8,
  p_resting boolean, p_rev bigint, p_writer bigint, p_doc text, p_floor bigint,
  p_send boolean, p_now float8, p_priority integer, p_delay float8, p_head_start float8
) RETURNS TABLE (made boolean, there text) LANGUAGE plpgsql AS $$
DECLARE
  v_floor  bigint;
  v_writer bigint;
  v_doc    text;
  v_now    float8;
BEGIN
  LOOP
    INSERT INTO ade.jobs (job_id, tenant, workflow, line, created_at, state, wake_at, resting, rev, writer, doc)
    VALUES (p_id, p_tenant, p_workflow, p_line, p_created, p_state, p_wake, p_resting, p_rev, p_writer, p_doc)
    ON CONFLICT (job_id) DO NOTHING;
    IF FOUND THEN
      SELECT f.fence INTO v_floor FROM ade.fences f WHERE f.tenant = p_tenant;
      IF v_floor > p_floor THEN
        RAISE EXCEPTION 'a row with a greater fence was removed' USING ERRCODE = 'AD001', DETAIL = v_floor::text;
      END IF;
      IF p_send THEN
        v_now := coalesce(p_now, extract(epoch FROM clock_timestamp())::float8);
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_tenant, 100)); -- see open_lanes
        INSERT INTO ade.messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)
        VALUES (p_id, p_tenant, p_priority, v_now - p_priority * p_head_start, p_delay <= 0, v_now + p_delay, v_now)
        ON CONFLICT (job_id) DO UPDATE SET ready = excluded.ready, visible_at = excluded.visible_at, receipt = NULL;
        IF NOT EXISTS (SELECT FROM ade.lanes l WHERE l.tenant = p_tenant) THEN
          PERFORM ade.open_lanes(ARRAY[p_tenant]);
        END IF;
      END IF;
      made := true;
      RETURN NEXT;
      RETURN;
    END IF;
    SELECT j.writer, j.doc INTO v_writer, v_doc FROM ade.jobs j WHERE j.job_id = p_id;
    IF FOUND THEN
      RETURN QUERY SELECT v_writer = p_writer, v_doc;
      RETURN;
    END IF; -- it went between the two looks
  END LOOP;
END $$;

-- Start a job: the write of `replace`, refused if a pause applies or a cap is reached.
--
-- A pause and a start exclude each other by one advisory lock, which starts share. Starts of one tenant under a cap
-- share eight permits, which are advisory locks too. Whoever holds one permit knows that at most seven others are
-- about to start, so where eight or more slots are free it may go on beside them. Nearer to the cap a start holds all
-- eight, and counts exactly. Nobody asks for more permits while it holds one: `again` sends the caller back to ask
-- with p_exact. Locks end with the transaction, which is this one statement, so no runner's death leaves one behind.
CREATE FUNCTION ade.admit_job(
  p_id text, p_old_rev bigint, p_tenant text, p_workflow text, p_state text, p_wake float8, p_resting boolean,
  p_rev bigint, p_writer bigint, p_doc text, p_cap_tenant bigint, p_cap_workflow bigint, p_exact boolean, p_retried boolean
) RETURNS TABLE (outcome text, of_tenant text, of_workflow text, running bigint) LANGUAGE plpgsql AS $$
DECLARE
  c_permits constant integer := 8;
  -- A cap so low is always near.
  v_near     boolean := p_exact OR p_cap_tenant BETWEEN 1 AND c_permits OR p_cap_workflow BETWEEN 1 AND c_permits;
  v_tenant   bigint;
  v_workflow bigint;
BEGIN
  -- The answer to an earlier try of this call may have been lost; its own row must not refuse it.
  IF p_retried AND EXISTS (SELECT FROM ade.jobs j WHERE j.job_id = p_id AND j.writer = p_writer) THEN
    outcome := 'started';
    RETURN NEXT;
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('ade.pauses', 0));
  RETURN QUERY SELECT 'pause', p.tenant::text, p.workflow::text, 0::bigint FROM ade.pauses p
    WHERE p.tenant IN ('', p_tenant) AND p.workflow IN ('', p_workflow) LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;
  IF p_cap_tenant > 0 OR p_cap_workflow > 0 THEN
    IF v_near THEN
      FOR permit IN 1..c_permits LOOP
        PERFORM pg_advisory_xact_lock(hashtextextended(p_tenant, permit));
      END LOOP;
    ELSE
      PERFORM pg_advisory_xact_lock(hashtextextended(p_tenant, 1 + floor(random() * c_permits)::integer));
    END IF;
    SELECT count(*), count(*) FILTER (WHERE j.workflow = p_workflow) INTO v_tenant, v_workflow
      FROM ade.jobs j WHERE j.state = 'RUNNING' AND j.tenant = p_tenant;
    IF p_cap_tenant > 0 AND v_tenant >= p_cap_tenant THEN
      RETURN QUERY SELECT 'tenant', p_tenant, p_workflow, v_tenant;
      RETURN;
    ELSIF p_cap_workflow > 0 AND v_workflow >= p_cap_workflow THEN
      RETURN QUERY SELECT 'workflow', p_tenant, p_workflow, v_workflow;
      RETURN;
    ELSIF NOT v_near AND ((p_cap_tenant > 0 AND v_tenant > p_cap_tenant - c_permits)
      OR (p_cap_workflow > 0 AND v_workflow > p_cap_workflow - c_permits)) THEN
      outcome := 'again';
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  UPDATE ade.jobs j SET state = p_state, wake_at = p_wake, resting = p_resting, rev = p_rev, writer = p_writer, doc = p_doc
    WHERE j.job_id = p_id AND j.rev = p_old_rev;
  outcome := CASE WHEN FOUND THEN 'started' ELSE 'moved' END;
  RETURN NEXT;
END $$;

-- Remove a row, and keep its fence for those that come after it.
CREATE FUNCTION ade.remove_job(p_id text, p_rev bigint, p_tenant text, p_fence bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM ade.jobs j WHERE j.job_id = p_id AND j.rev = p_rev;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- Rows of about the same age have about the same fence: few removals write it.
  IF p_fence > 0 AND NOT EXISTS (SELECT FROM ade.fences f WHERE f.tenant = p_tenant AND f.fence >= p_fence) THEN
    INSERT INTO ade.fences AS f (tenant, fence) VALUES (p_tenant, p_fence)
    ON CONFLICT (tenant) DO UPDATE SET fence = greatest(f.fence, excluded.fence);
  END IF;
  RETURN true;
END $$;

-- == The work queue =================================================================================================

CREATE TABLE ade.messages (
  job_id     text COLLATE "C" NOT NULL PRIMARY KEY, -- a message says "look at this job": two would say no more
  tenant     text COLLATE "C" NOT NULL,
  priority   integer NOT NULL,
  rank       float8 NOT NULL,    -- send time less a head start by priority: orders a lane, starves nobody
  ready      boolean NOT NULL,   -- false: hidden until visible_at
  visible_at float8 NOT NULL,
  sent_at    float8 NOT NULL,
  receives   integer NOT NULL DEFAULT 0,
  receipt    bigint              -- of the delivery that holds it
) WITH (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX messages_lane ON ade.messages (tenant, rank, job_id) WHERE ready;
CREATE INDEX messages_hidden ON ade.messages (visible_at) WHERE NOT ready;

-- The tenants that have ready messages; the one served longest ago is next.
CREATE TABLE ade.lanes (
  tenant text COLLATE "C" NOT NULL PRIMARY KEY,
  served bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lanes_served ON ade.lanes (served, tenant);
CREATE SEQUENCE ade.turns CACHE 1;

CREATE TABLE ade.dead_letters (
  job_id   text COLLATE "C" NOT NULL PRIMARY KEY,
  tenant   text COLLATE "C" NOT NULL,
  priority integer NOT NULL,
  reason   text NOT NULL,
  at       float8 NOT NULL
);
CREATE INDEX dead_letters_at ON ade.dead_letters (at, job_id);

-- The caller's time, or the server's: the one clock that all machines share.
CREATE FUNCTION ade.moment(p_now float8) RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(p_now, extract(epoch FROM clock_timestamp())::float8)
$$;

-- Open the lanes of tenants: a tenant that comes (back) is level with who waited longest.
--
-- A lane is closed by a receiver that finds it empty, and must not be closed while a message is on its way into it.
-- So whoever brings messages shares the tenant's advisory lock until its end, and a lane is closed only by one who
-- gets that lock alone, without waiting, and then looks again.
CREATE FUNCTION ade.open_lanes(p_tenants text[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO ade.lanes (tenant, served)
  SELECT t, (SELECT coalesce(min(l.served), 0) FROM ade.lanes l) FROM (SELECT DISTINCT unnest(p_tenants) AS t) AS given
  ORDER BY t COLLATE "C"
  ON CONFLICT (tenant) DO NOTHING
$$;

CREATE FUNCTION ade.send_messages(
  p_now float8, p_ids text[], p_tenants text[], p_priorities integer[], p_delays float8[], p_head_start float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_now  float8 := ade.moment(p_now);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(t, 100))
    FROM (SELECT DISTINCT unnest(p_tenants) AS t) AS given;
  INSERT INTO ade.messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)
  SELECT DISTINCT ON (m.id COLLATE "C") m.id, m.tenant, m.priority, v_now - m.priority * p_head_start, m.delay <= 0, v_now + m.delay, v_now
  FROM unnest(p_ids, p_tenants, p_priorities, p_delays) WITH ORDINALITY AS m (id, tenant, priority, delay, n)
  ORDER BY m.id COLLATE "C", m.n DESC
  ON CONFLICT (job_id) DO UPDATE SET ready = excluded.ready, visible_at = excluded.visible_at, receipt = NULL;
  PERFORM ade.open_lanes(p_tenants);
END $$;

-- Up to p_most messages, a tenant at a time in turn; with none: one row without an id that says in how many seconds
-- one becomes visible, if any is hidden.
--
-- `record` is the job's, where the table is in this database, too: who takes a message reads the job next.
--
-- Receivers pass each other by: of lanes and of messages each skips what another has locked. What is taken need not
-- be on disk (synchronous_commit): a server that forgets it in a crash delivers the message again, as it may.
CREATE FUNCTION ade.take_messages(p_now float8, p_most integer, p_visibility float8, p_avoid text[])
RETURNS TABLE (
  id text, of_tenant text, urgency integer, token bigint, times integer, sent float8, record text, ahead float8
)
LANGUAGE plpgsql AS $$
DECLARE
  v_now    float8 := ade.moment(p_now);
  v_due    text[];
  v_empty  text[] := p_avoid; -- lanes to leave alone in this call
  v_lane   text;
  v_locked boolean;
  v_found  ade.messages%ROWTYPE;
  v_taken  integer := 0;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- Statistics of a queue are always out of date: sure to meet a message soon, the planner may read the whole table.
  PERFORM set_config('enable_seqscan', 'off', true);
  IF (SELECT min(m.visible_at) FROM ade.messages m WHERE NOT m.ready) <= v_now THEN
    WITH due AS (
      SELECT m.job_id FROM ade.messages m WHERE NOT m.ready AND m.visible_at <= v_now
      ORDER BY m.visible_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), shown AS (
      UPDATE ade.messages m SET ready = true, receipt = NULL FROM due WHERE m.job_id = due.job_id RETURNING m.tenant
    )
    SELECT array_agg(DISTINCT shown.tenant) INTO v_due FROM shown;
    IF v_due IS NOT NULL THEN
      PERFORM pg_advisory_xact_lock_shared(hashtextextended(t, 100)) FROM unnest(v_due) AS t;
      PERFORM ade.open_lanes(v_due);
    END IF;
  END IF;
  WHILE v_taken < p_most LOOP
    v_locked := true;
    SELECT l.tenant INTO v_lane FROM ade.lanes l WHERE l.tenant <> ALL (v_empty)
      ORDER BY l.served, l.tenant LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN -- others are just being served from all that are left
      v_locked := false;
      SELECT l.tenant INTO v_lane FROM ade.lanes l WHERE l.tenant <> ALL (v_empty) ORDER BY l.served, l.tenant LIMIT 1;
      EXIT WHEN NOT FOUND;
    END IF;
    SELECT m.* INTO v_found FROM ade.messages m WHERE m.ready AND m.tenant = v_lane
      ORDER BY m.rank, m.job_id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      IF v_locked AND pg_try_advisory_xact_lock(hashtextextended(v_lane, 100)) THEN
        DELETE FROM ade.lanes l WHERE l.tenant = v_lane
          AND NOT EXISTS (SELECT FROM ade.messages m WHERE m.ready AND m.tenant = v_lane);
      END IF;
      v_empty := v_empty || v_lane;
      CONTINUE;
    END IF;
    v_taken := v_taken + 1;
    id := v_found.job_id;
    of_tenant := v_found.tenant;
    urgency := v_found.priority;
    token := floor(random() * 9007199254740992)::bigint;
    times := v_found.receives + 1;
    sent := v_found.sent_at;
    UPDATE ade.messages m SET ready = false, receipt = token, visible_at = v_now + p_visibility, receives = times
      WHERE m.job_id = id;
    IF v_locked THEN
      UPDATE ade.lanes l SET served = nextval('ade.turns') WHERE l.tenant = v_lane;
    END IF;
    SELECT j.doc INTO record FROM ade.jobs j WHERE j.job_id = id;
    RETURN NEXT;
  END LOOP;
  IF v_taken = 0 THEN
    id := NULL;
    SELECT min(m.visible_at) - v_now INTO ahead FROM ade.messages m WHERE NOT m.ready;
    RETURN NEXT;
  END IF;
END $$;

-- Show a message again only after a while; at once (p_seconds <= 0) its receipt goes with it.
CREATE FUNCTION ade.hide_message(p_now float8, p_id text, p_receipt bigint, p_seconds float8) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE ade.messages m
    SET visible_at = ade.moment(p_now) + p_seconds, receipt = CASE WHEN p_seconds <= 0 THEN NULL ELSE m.receipt END
    WHERE m.job_id = p_id AND m.receipt = p_receipt AND NOT m.ready;
  RETURN FOUND;
END $$;

-- Delete a message by its receipt. One whose deletion a crash forgets comes back, and is found to be done.
CREATE FUNCTION ade.ack_message(p_id text, p_receipt bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM ade.messages m WHERE m.job_id = p_id AND m.receipt = p_receipt;
END $$;

-- == For people =====================================================================================================

-- A record as JSON; one that cannot be read says so instead of failing the query.
CREATE FUNCTION ade.record(p_doc text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_doc::jsonb;
EXCEPTION WHEN others THEN
  RETURN '{"reason": "the record cannot be read"}'::jsonb;
END $$;
