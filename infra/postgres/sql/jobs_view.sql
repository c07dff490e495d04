-- Jobs for people with a SQL shell; no program reads it. Columns: docs/reference/rows.md. `ade infra init` replaces it each
-- time, with the faults that this version knows in the place of FAULTS. People's own views on it stay, so a new column
-- goes to the end.
CREATE OR REPLACE VIEW ade.jobs_view AS
SELECT job_id, tenant, workflow, state,
  doc ->> 'reason' AS reason,
  doc #>> '{error,verdict}' AS error_verdict,
  CASE doc #>> '{error,verdict}' FAULTS END AS error_fault,
  doc #>> '{error,message}' AS error_message,
  coalesce((doc ->> 'attempts_total')::integer, 0) AS attempts,
  doc #>> '{lease,owner}' AS lease_owner,
  to_timestamp((doc #>> '{lease,expires}')::float8) AS lease_expires,
  (SELECT count(*) FROM jsonb_array_elements(coalesce(doc -> 'inputs', '[]')) AS i WHERE i ->> 'role' = 'primary') AS inputs,
  (SELECT i #>> '{ref,key}' FROM jsonb_array_elements(coalesce(doc -> 'inputs', '[]')) AS i
    WHERE i ->> 'role' = 'primary' LIMIT 1) AS input_key,
  to_timestamp(created_at) AS created,
  to_timestamp(wake_at) AS wake_at,
  coalesce((doc ->> 'v')::integer, 1) AS v,
  rev,
  CASE state WHEN 'SUCCEEDED' THEN coalesce(outcome, 'clean') END AS outcome
FROM (SELECT job_id, tenant, workflow, state, created_at, wake_at, rev, outcome, ade.record(doc) AS doc FROM ade.jobs) AS jobs;
