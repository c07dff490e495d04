-- Schema 2: how good a result is, beside its state. Programs of schema 1 write the same rows as before.
--
-- The column is kept by a trigger, whichever program writes the row, and only for results with errors or warnings: most
-- are clean, and need no entries in the indexes.

ALTER TABLE ade.jobs ADD COLUMN outcome text COLLATE "C";

CREATE FUNCTION ade.outcome_of(p_doc text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN (f #>> '{error}')::numeric > 0 THEN 'errors'
    WHEN (f #>> '{warning}')::numeric > 0 THEN 'warnings'
  END FROM (SELECT ade.record(p_doc) #> '{summary,findings}' AS f) AS found
$$;

CREATE FUNCTION ade.note_outcome() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.outcome := ade.outcome_of(NEW.doc);
  RETURN NEW;
END $$;
CREATE TRIGGER note_outcome BEFORE INSERT OR UPDATE OF state ON ade.jobs FOR EACH ROW
  WHEN (NEW.state = 'SUCCEEDED') EXECUTE FUNCTION ade.note_outcome();

UPDATE ade.jobs SET outcome = ade.outcome_of(doc) WHERE state = 'SUCCEEDED' AND ade.outcome_of(doc) IS NOT NULL;

CREATE INDEX jobs_outcome ON ade.jobs (outcome, created_at, job_id) WHERE state = 'SUCCEEDED' AND outcome IS NOT NULL;
CREATE INDEX jobs_tenant_outcome ON ade.jobs (tenant, outcome, created_at, job_id)
  WHERE state = 'SUCCEEDED' AND outcome IS NOT NULL;
