-- Who may do what. Run by `ade infra init` after the migrations, every time; "ade" stands for the schema, which also
-- begins the roles' names. They cannot log in: an operator makes users and puts them into one of these.
--
--   ade_runner   runners, janitor and the consoles of operators: everything but the schema itself
--   ade_handler  whoever hears of drops and records them: adds and moves jobs, sends messages, removes nothing
--   ade_reader   dashboards and people: sees jobs, counts and the queue, changes nothing
--
-- The owner is whoever runs the migrations; only it can change the schema.

REVOKE ALL ON SCHEMA ade FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA ade FROM PUBLIC, ade_runner, ade_handler, ade_reader;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA ade FROM PUBLIC, ade_runner, ade_handler, ade_reader;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ade FROM PUBLIC, ade_runner, ade_handler, ade_reader;
GRANT USAGE ON SCHEMA ade TO ade_runner, ade_handler, ade_reader;

-- Everybody sees everything: a record holds names, states and counts, and no cell of any file.
GRANT SELECT ON ALL TABLES IN SCHEMA ade TO ade_runner, ade_handler, ade_reader;
GRANT EXECUTE ON FUNCTION ade.moment, ade.record TO ade_runner, ade_handler, ade_reader;

GRANT INSERT, UPDATE, DELETE ON ade.jobs, ade.messages, ade.lanes, ade.dead_letters, ade.pauses, ade.leases, ade.fences,
  ade.generations, ade.ends, ade.resolutions TO ade_runner;
GRANT DELETE, UPDATE (n) ON ade.tallies TO ade_runner; -- to clear slots that came to nothing
GRANT USAGE ON SEQUENCE ade.turns TO ade_runner;
GRANT EXECUTE ON FUNCTION ade.add_job, ade.admit_job, ade.remove_job, ade.open_lanes, ade.send_messages,
  ade.take_messages, ade.hide_message, ade.ack_message TO ade_runner;

GRANT INSERT, UPDATE ON ade.jobs, ade.messages, ade.generations, ade.leases TO ade_handler;
GRANT DELETE ON ade.leases TO ade_handler; -- to let go what it holds
GRANT INSERT ON ade.lanes TO ade_handler;
GRANT EXECUTE ON FUNCTION ade.add_job, ade.open_lanes, ade.send_messages TO ade_handler;
