-- Every statement of the adapters that is not a function of the schema. The line above a statement names it; the
-- program puts the schema of the URL in the place of "ade". Multi-step writes are functions: see migrations/.

-- version --
-- Asked by every new connection: the schema's version, the server's time, which process serves us, and what the role
-- or the database sets otherwise than we need it.
SELECT (SELECT max(version) FROM ade.versions), extract(epoch FROM clock_timestamp())::float8, pg_backend_pid(),
  current_setting('transaction_isolation'), current_setting('extra_float_digits')::integer,
  current_setting('server_encoding')

-- add_job --
SELECT made, there FROM ade.add_job(%(job_id)s, %(tenant)s, %(workflow)s, %(line)s, %(created_at)s, %(state)s,
  %(wake_at)s, %(resting)s, %(rev)s, %(writer)s, %(doc)s, %(floor)s, %(send)s, %(now)s, %(priority)s, %(delay)s,
  %(head_start)s)

-- admit_job --
SELECT outcome, of_tenant, of_workflow, running FROM ade.admit_job(%(job_id)s, %(old_rev)s, %(tenant)s, %(workflow)s,
  %(state)s, %(wake_at)s, %(resting)s, %(rev)s, %(writer)s, %(doc)s, %(cap_tenant)s, %(cap_workflow)s, %(exact)s,
  %(retried)s)

-- replace_job --
UPDATE ade.jobs SET state = %(state)s, wake_at = %(wake_at)s, resting = %(resting)s, rev = %(rev)s,
  writer = %(writer)s, doc = %(doc)s WHERE job_id = %(job_id)s AND rev = %(old_rev)s
  AND CASE WHEN %(old_owner)s::text IS NULL THEN true
    ELSE doc::jsonb #>> '{lease,owner}' = %(old_owner)s END

-- end_job --
-- The write of replace_job, and what the end counts: in the order of the arrays everybody counts all first, so that no
-- two wait for each other.
WITH ended AS (
  UPDATE ade.jobs SET state = %(state)s, wake_at = %(wake_at)s, resting = %(resting)s, rev = %(rev)s,
    writer = %(writer)s, doc = %(doc)s WHERE job_id = %(job_id)s AND rev = %(old_rev)s
    AND CASE WHEN %(old_owner)s::text IS NULL THEN true
      ELSE doc::jsonb #>> '{lease,owner}' = %(old_owner)s END
  RETURNING job_id
), counted AS (
  INSERT INTO ade.ends AS e (tenant, workflow, at, slot, files, failed, rows, wrong, drifted, delay0, delay1, delay2, delay3, delay4, delay5, delay6, last_at, last_job)
  SELECT c.tenant, c.workflow, c.at, CASE c.tenant WHEN '' THEN mod(pg_backend_pid(), 8) ELSE 0 END,
    (%(numbers)s::bigint[])[1], (%(numbers)s::bigint[])[2], (%(numbers)s::bigint[])[3], (%(numbers)s::bigint[])[4], (%(numbers)s::bigint[])[5], (%(numbers)s::bigint[])[6], (%(numbers)s::bigint[])[7], (%(numbers)s::bigint[])[8], (%(numbers)s::bigint[])[9], (%(numbers)s::bigint[])[10], (%(numbers)s::bigint[])[11], (%(numbers)s::bigint[])[12],
    %(last_at)s, ended.job_id
  FROM ended, unnest(%(tenants)s::text[], %(workflows)s::text[], %(ats)s::float8[]) AS c (tenant, workflow, at)
  ON CONFLICT (tenant, workflow, at, slot) DO UPDATE SET
    files = e.files + excluded.files, failed = e.failed + excluded.failed, rows = e.rows + excluded.rows, wrong = e.wrong + excluded.wrong, drifted = e.drifted + excluded.drifted, delay0 = e.delay0 + excluded.delay0, delay1 = e.delay1 + excluded.delay1, delay2 = e.delay2 + excluded.delay2, delay3 = e.delay3 + excluded.delay3, delay4 = e.delay4 + excluded.delay4, delay5 = e.delay5 + excluded.delay5, delay6 = e.delay6 + excluded.delay6,
    last_job = CASE WHEN excluded.last_at >= e.last_at THEN excluded.last_job ELSE e.last_job END,
    last_at = greatest(e.last_at, excluded.last_at)
)
SELECT job_id FROM ended

-- ends --
SELECT at, sum(files)::bigint, sum(failed)::bigint, sum(rows)::bigint, sum(wrong)::bigint, sum(drifted)::bigint, sum(delay0)::bigint, sum(delay1)::bigint, sum(delay2)::bigint, sum(delay3)::bigint, sum(delay4)::bigint, sum(delay5)::bigint, sum(delay6)::bigint, max(last_at), (array_agg(last_job ORDER BY last_at DESC))[1]
FROM ade.ends WHERE tenant = '' AND at >= %(since)s GROUP BY at ORDER BY at

-- sender_ends --
SELECT tenant, workflow, at, files, failed, rows, wrong, drifted, delay0, delay1, delay2, delay3, delay4, delay5, delay6, last_at, last_job FROM ade.ends
WHERE tenant <> '' AND at >= %(since)s AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)

-- resolve --
INSERT INTO ade.resolutions AS r (what, until, tenant, at, by, note)
VALUES (%(what)s, %(until)s, %(tenant)s, %(at)s, %(by)s, %(note)s)
ON CONFLICT (what) DO UPDATE SET until = excluded.until, tenant = excluded.tenant, at = excluded.at, by = excluded.by,
  note = excluded.note
WHERE excluded.until > r.until

-- resolved_by --
SELECT 1 FROM ade.resolutions WHERE what = %(what)s AND until = %(until)s AND at = %(at)s AND by = %(by)s

-- resolutions --
SELECT what, until, tenant, at, by, note FROM ade.resolutions ORDER BY at DESC, what

-- written_by --
SELECT 1 FROM ade.jobs WHERE job_id = %(job_id)s AND writer = %(writer)s

-- remove_job --
SELECT ade.remove_job(%(job_id)s, %(rev)s, %(tenant)s, %(fence)s)

-- get_job --
SELECT doc FROM ade.jobs WHERE job_id = %(job_id)s

-- get_jobs --
SELECT job_id, doc FROM ade.jobs WHERE job_id = ANY (%(job_ids)s)

-- line --
SELECT job_id, tenant, workflow, state, created_at, doc FROM ade.jobs
WHERE hashtextextended(line, 0) = hashtextextended(%(line)s, 0) AND line = %(line)s ORDER BY created_at, job_id

-- attention --
SELECT wake_at, job_id, doc FROM ade.jobs WHERE wake_at IS NOT NULL AND NOT resting AND wake_at <= %(before)s
  AND (wake_at, job_id) > (%(after_at)s, %(after_id)s) ORDER BY wake_at, job_id LIMIT %(limit)s

-- outdated --
SELECT wake_at, job_id, doc FROM ade.jobs WHERE wake_at IS NOT NULL AND resting AND wake_at <= %(before)s
  AND (wake_at, job_id) > (%(after_at)s, %(after_id)s) ORDER BY wake_at, job_id LIMIT %(limit)s

-- without_message --
-- The next QUEUED jobs, and of those that have no message the record. One snapshot: a job that is added, sent or taken
-- in the meantime is seen before or after, never in between.
SELECT q.created_at, q.job_id, CASE WHEN (SELECT m.job_id FROM ade.messages m WHERE m.job_id = q.job_id) IS NULL
  THEN (SELECT j.doc FROM ade.jobs j WHERE j.job_id = q.job_id) END
FROM (
  SELECT created_at, job_id FROM ade.jobs
  WHERE state = 'QUEUED' AND state NOT IN ('SUCCEEDED', 'EXPIRED')
    AND (created_at, job_id) > (%(after_at)s, %(after_id)s)
  ORDER BY created_at, job_id LIMIT %(limit)s
) AS q

-- every_row --
SELECT created_at, job_id, state, doc FROM ade.jobs WHERE (created_at, job_id) > (%(after_at)s, %(after_id)s)
ORDER BY created_at, job_id LIMIT %(limit)s

-- counts --
SELECT state, sum(n)::bigint FROM ade.tallies GROUP BY state HAVING sum(n) <> 0

-- counts_of_tenant --
SELECT tenant, state, sum(n)::bigint FROM ade.tallies WHERE tenant = %(tenant)s GROUP BY tenant, state HAVING sum(n) <> 0

-- counts_by_tenant --
SELECT tenant, state, sum(n)::bigint FROM ade.tallies GROUP BY tenant, state HAVING sum(n) <> 0 ORDER BY tenant, state

-- count_created_before --
SELECT count(*) FROM ade.jobs WHERE state = ANY (%(states)s) AND created_at < %(before)s

-- tidy --
-- Slots that came to nothing, old counters and resolutions, and leases of owners that died long ago, a batch at a time.
WITH nothing AS (
  DELETE FROM ade.tallies t WHERE (t.tenant, t.state, t.slot) IN
    (SELECT tenant, state, slot FROM ade.tallies WHERE n = 0 LIMIT 1000 FOR UPDATE SKIP LOCKED)
), old_ends AS (
  DELETE FROM ade.ends WHERE (tenant = '' AND at < ade.moment(%(now)s) - %(kept)s)
    OR (tenant <> '' AND at < ade.moment(%(now)s) - %(kept_of_senders)s)
), old_resolutions AS (
  DELETE FROM ade.resolutions WHERE at < ade.moment(%(now)s) - %(kept_of_senders)s
)
DELETE FROM ade.leases l WHERE l.name IN
  (SELECT name FROM ade.leases WHERE expires < ade.moment(%(now)s) - 86400 LIMIT 1000 FOR UPDATE SKIP LOCKED)

-- reopen_lanes --
-- Tenants that have ready messages and no lane, which nobody would serve: somebody deleted it. From one tenant to the
-- next by the index, however many messages each has.
WITH RECURSIVE ready AS (
  (SELECT m.tenant FROM ade.messages m WHERE m.ready ORDER BY m.tenant LIMIT 1)
  UNION ALL
  SELECT (SELECT m.tenant FROM ade.messages m WHERE m.ready AND m.tenant > r.tenant ORDER BY m.tenant LIMIT 1)
  FROM ready r WHERE r.tenant IS NOT NULL
)
SELECT ade.open_lanes(array_agg(r.tenant::text)) FROM ready r
WHERE r.tenant IS NOT NULL AND NOT EXISTS (SELECT FROM ade.lanes l WHERE l.tenant = r.tenant) HAVING count(*) > 0

-- add_pause --
-- Waits for the starts that are under way, and holds back those that come, for as long as this one statement takes.
WITH alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended('ade.pauses', 0)))
INSERT INTO ade.pauses (tenant, workflow, since, by)
SELECT %(tenant)s, %(workflow)s, %(since)s, %(by)s FROM alone
ON CONFLICT (tenant, workflow) DO NOTHING

-- remove_pause --
DELETE FROM ade.pauses WHERE tenant = %(tenant)s AND workflow = %(workflow)s

-- erase_tenant --
-- What is left of a tenant after its jobs were removed one by one: rows that cannot be read, messages, counts.
WITH jobs AS (DELETE FROM ade.jobs WHERE tenant = %(tenant)s RETURNING 1),
  messages AS (DELETE FROM ade.messages WHERE tenant = %(tenant)s RETURNING 1),
  dead AS (DELETE FROM ade.dead_letters WHERE tenant = %(tenant)s RETURNING 1),
  lane AS (DELETE FROM ade.lanes WHERE tenant = %(tenant)s),
  ends AS (DELETE FROM ade.ends WHERE tenant = %(tenant)s),
  resolutions AS (DELETE FROM ade.resolutions WHERE tenant = %(tenant)s),
  last AS (UPDATE ade.ends SET last_job = '' WHERE tenant = ''
    AND NOT EXISTS (SELECT FROM ade.jobs j WHERE j.job_id = last_job AND j.tenant <> %(tenant)s))
SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM messages) + (SELECT count(*) FROM dead)

-- pauses --
SELECT tenant, workflow, since, by FROM ade.pauses ORDER BY since, tenant, workflow

-- hold --
INSERT INTO ade.leases AS l (name, owner, expires) VALUES (%(name)s, %(owner)s, ade.moment(%(now)s) + %(seconds)s)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires
WHERE l.owner = excluded.owner OR l.expires <= ade.moment(%(now)s)
  -- Nobody holds a lease for so long: the clock was set back, and its owner may have died long ago.
  OR l.expires > excluded.expires + 60

-- let_go --
DELETE FROM ade.leases WHERE name = %(name)s AND owner = %(owner)s

-- generations --
SELECT name, n FROM ade.generations WHERE name = ANY(%(names)s)

-- advance --
INSERT INTO ade.generations AS g (name, n) VALUES (%(name)s, 1) ON CONFLICT (name) DO UPDATE SET n = g.n + 1

-- send --
SELECT ade.send_messages(%(now)s, %(ids)s, %(tenants)s, %(priorities)s, %(delays)s, %(head_start)s)

-- take --
SELECT id, of_tenant, urgency, token, times, sent, record, ahead
FROM ade.take_messages(%(now)s, %(most)s, %(visibility)s, %(avoid)s)

-- hide --
SELECT ade.hide_message(%(now)s, %(job_id)s, %(receipt)s, %(seconds)s)

-- ack --
SELECT ade.ack_message(%(job_id)s, %(receipt)s)

-- present --
SELECT job_id FROM ade.messages WHERE job_id = ANY (%(job_ids)s)

-- bury --
INSERT INTO ade.dead_letters AS d (job_id, tenant, priority, reason, at)
VALUES (%(job_id)s, %(tenant)s, %(priority)s, %(reason)s, ade.moment(%(now)s))
ON CONFLICT (job_id) DO UPDATE SET tenant = excluded.tenant, priority = excluded.priority, reason = excluded.reason,
  at = excluded.at

-- dead --
SELECT job_id, tenant, priority, reason, at FROM ade.dead_letters ORDER BY at, job_id LIMIT %(limit)s

-- redrive_all --
DELETE FROM ade.dead_letters

-- redrive --
DELETE FROM ade.dead_letters WHERE job_id = %(job_id)s

-- stats --
SELECT count(*) FILTER (WHERE ready OR visible_at <= now.at),
  count(*) FILTER (WHERE NOT ready AND visible_at > now.at AND receipt IS NOT NULL),
  count(*) FILTER (WHERE NOT ready AND visible_at > now.at AND receipt IS NULL),
  (SELECT count(*) FROM ade.dead_letters),
  max(now.at - sent_at) FILTER (WHERE ready OR visible_at <= now.at)
FROM (SELECT ade.moment(%(now)s) AS at) AS now LEFT JOIN ade.messages ON true

-- health --
-- For `ade doctor`, with the rights of any role. pg_stat_activity shows strangers' transactions to few.
SELECT current_setting('server_version'), (SELECT max(version) FROM ade.versions), current_user::text,
  CASE
    WHEN pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = %(schema)s), 'USAGE') THEN 'own'
    WHEN has_table_privilege('ade.jobs', 'INSERT') AND has_table_privilege('ade.jobs', 'DELETE')
      AND has_table_privilege('ade.messages', 'DELETE') AND has_table_privilege('ade.pauses', 'INSERT') THEN 'run'
    WHEN has_table_privilege('ade.jobs', 'INSERT') AND has_table_privilege('ade.messages', 'INSERT') THEN 'record'
    WHEN has_table_privilege('ade.jobs', 'SELECT') THEN 'read'
    ELSE ''
  END,
  pg_is_in_recovery(), current_setting('fsync')::boolean, current_setting('autovacuum')::boolean,
  (SELECT coalesce(sum(numbackends), 0)::integer FROM pg_stat_database),
  current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
  (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8 FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid())

-- dead_rows --
SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables
WHERE schemaname = %(schema)s ORDER BY relname
