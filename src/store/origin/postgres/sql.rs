//! The statements.
//!
//! Tables lie in the first schema of the role's `search_path`. Transactions that write ask for READ COMMITTED: the order of
//! commits comes from the lock of the head's row, and under a stricter level a session that waited for it would fail instead.

/// The version of the tables below, in the head.
pub(super) const LAYOUT: i32 = 1;

/// Creates the tables. The values are not compressed: most are short, and every copy reads them all. `steward_head` has one
/// row, with the id 1, and leaves room on its page, because each commit updates the row. Of the statements on one table,
/// that with the strongest lock comes first, so that two nodes that run them at once do not wait for each other.
pub(super) const CREATE_TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS steward_head (
  id int2 PRIMARY KEY CHECK (id = 1), workspace uuid NOT NULL, layout int4 NOT NULL, format int8 NOT NULL,
  seq int8 NOT NULL, name uuid NOT NULL, horizon int8 NOT NULL) WITH (fillfactor = 10);
CREATE TABLE IF NOT EXISTS steward_commits (
  seq int8 PRIMARY KEY, name uuid NOT NULL UNIQUE, node text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS steward_rows (
  tab text COLLATE "C" NOT NULL, k bytea NOT NULL, v bytea, seq int8 NOT NULL, PRIMARY KEY (tab, k));
ALTER TABLE steward_rows ALTER v SET STORAGE EXTERNAL,
  SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX IF NOT EXISTS steward_rows_by_seq ON steward_rows (seq ASC);
CREATE INDEX IF NOT EXISTS steward_removed ON steward_rows (seq ASC) WHERE v IS NULL;
CREATE TABLE IF NOT EXISTS steward_nodes (
  name text PRIMARY KEY, release text NOT NULL, seq int8 NOT NULL, seen timestamptz NOT NULL, problem text)"#;

/// The head, or no row.
pub(super) const HEAD: &str =
    "SELECT workspace, layout, format, seq, name, horizon FROM steward_head WHERE id = 1";

/// What changed after the commit `$1`, and the head, of one moment. There is one row if nothing changed, and
/// [`MOST_CHANGES`] if more may have changed. As two statements they could be of two moments; as a UNION they would be planned
/// again each time.
pub(super) const SINCE: &str = "SELECT h.format, h.horizon, h.seq, h.name, p.name AS mine, x.tab, x.k, x.v \
     FROM steward_head h LEFT JOIN steward_commits p ON p.seq = $1 \
     LEFT JOIN (SELECT tab, k, v FROM steward_rows WHERE seq > $1 LIMIT 20001) x ON true \
     WHERE h.id = 1";

/// The most rows of [`SINCE`]. A copy that lacks as many takes them without time limits.
pub(super) const MOST_CHANGES: usize = 20_001;

/// The part of [`SINCE`] about the head.
pub(super) const PAST: &str = "SELECT h.format, h.horizon, h.seq, h.name, p.name AS mine \
     FROM steward_head h LEFT JOIN steward_commits p ON p.seq = $1 WHERE h.id = 1";

/// The rows that changed after the commit `$1`.
pub(super) const ROWS_SINCE: &str = "SELECT tab, k, v FROM steward_rows WHERE seq > $1";

/// How many rows changed after the commit `$1`, and how many rows there are.
pub(super) const LACKING: &str = "SELECT (SELECT count(*) FROM steward_rows WHERE seq > $1), \
     (SELECT count(*) FROM steward_rows WHERE v IS NOT NULL)";

/// Begins a reading whose statements see the same moment.
pub(super) const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// All rows, without removed ones. No index fits, so the table is scanned, although the settings of the session avoid that.
pub(super) const ALL_ROWS: &str = "SELECT tab, k, v FROM steward_rows WHERE v IS NOT NULL";

/// Begins a turn.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Waits for the lock of the head's row. The server serves those that wait in their order.
pub(super) const LOCK_HEAD: &str =
    "SELECT seq, name FROM steward_head WHERE id = 1 FOR NO KEY UPDATE";

/// The number of this session.
pub(super) const OWN_PID: &str = "SELECT pg_backend_pid()";

/// Waits for the locks that a commit and a heartbeat need for a moment.
pub(super) const TRY_LOCKS: &str = "BEGIN; SET LOCAL lock_timeout = 2000; \
     LOCK TABLE steward_head, steward_commits, steward_rows, steward_nodes IN ROW EXCLUSIVE MODE; \
     SELECT seq FROM steward_head WHERE id = 1 FOR NO KEY UPDATE; ROLLBACK";

/// What [`BLOCKERS`] and [`WRITERS`] return of a session. Other roles may see less of it.
macro_rules! session {
    () => {
        "coalesce(pid, 0), coalesce(application_name, ''), coalesce(usename::text, ''), coalesce(state, 'unknown'), \
         coalesce(wait_event, ''), coalesce(extract(epoch FROM now() - xact_start), 0)::int8, \
         coalesce(to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), '')"
    };
}

/// The sessions at the end of the chains of sessions for which `$1` waits. A prepared transaction has the number 0.
pub(super) const BLOCKERS: &str = concat!(
    "WITH RECURSIVE chain (pid) AS ( \
       SELECT unnest(pg_blocking_pids($1)) UNION SELECT unnest(pg_blocking_pids(chain.pid)) FROM chain) \
     SELECT ",
    session!(),
    " FROM chain LEFT JOIN pg_stat_activity s USING (pid) \
     WHERE (pid = 0 OR s.pid IS NOT NULL) AND wait_event_type IS DISTINCT FROM 'Lock' ORDER BY pid"
);

/// The sessions that may have locked rows of a commit or a heartbeat for longer than a moment.
pub(super) const WRITERS: &str = concat!(
    "SELECT DISTINCT ",
    session!(),
    " FROM pg_locks LEFT JOIN pg_stat_activity s USING (pid) WHERE locktype = 'relation' AND granted \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND relation IN ('steward_commits'::regclass, 'steward_rows'::regclass, 'steward_nodes'::regclass) \
     AND mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock') \
     AND pid IS DISTINCT FROM pg_backend_pid() AND coalesce(now() - xact_start > interval '3 seconds', true)"
);

/// Ends a session of the same role.
pub(super) const TERMINATE: &str = "SELECT pg_terminate_backend($1)";

/// Writes a lock that waits for nobody, and that changes nothing. Returns whether the commit `$1` has the name `$2`.
pub(super) const CONFIRM: &str = "SELECT coalesce(p.name = $2, false) OR (h.seq = $1 AND h.name = $2) \
     FROM steward_head h LEFT JOIN steward_commits p ON p.seq = $1 WHERE h.id = 1 FOR KEY SHARE OF h";

/// Takes a commit if the head is still the one that it names. Updates the head first: every statement locks it before any
/// other row, so no two of them wait for each other. No row: another commit came first.
pub(super) const COMMIT_IF_NEXT: &str = "WITH moved AS (UPDATE steward_head \
             SET seq = seq + 1, name = $6, format = $8 WHERE id = 1 AND seq = $4 AND name = $5 RETURNING seq), \
     kept AS (INSERT INTO steward_commits SELECT seq, $6, $7::text, now() FROM moved), \
     put AS (INSERT INTO steward_rows SELECT t, k, v, moved.seq \
             FROM moved, unnest($1::text[], $2::bytea[], $3::bytea[]) r(t, k, v) \
             ON CONFLICT (tab, k) DO UPDATE SET v = EXCLUDED.v, seq = EXCLUDED.seq) \
     SELECT seq FROM moved";

/// Puts more rows into the commit `$4`, whose transaction has moved the head.
pub(super) const PUT_MORE: &str = "INSERT INTO steward_rows \
     SELECT t, k, v, $4::int8 FROM unnest($1::text[], $2::bytea[], $3::bytea[]) r(t, k, v) \
     ON CONFLICT (tab, k) DO UPDATE SET v = EXCLUDED.v, seq = EXCLUDED.seq";

/// The value of a row.
pub(super) const VALUE: &str = "SELECT v FROM steward_rows WHERE tab = $1 AND k = $2";

/// Whether there is a row.
pub(super) const HAS_ROWS: &str = "SELECT EXISTS (SELECT FROM steward_rows)";

/// The number of the commit with this name, or no row.
pub(super) const COMMITTED: &str = "SELECT seq FROM steward_commits WHERE name = $1 \
     UNION ALL SELECT seq FROM steward_head WHERE name = $1 LIMIT 1";

/// Creates the head of a workspace whose first commit is `$3`. No row: there is a head.
pub(super) const FOUND_WORKSPACE: &str = "INSERT INTO steward_head (id, workspace, layout, format, seq, name, horizon) \
     VALUES (1, $1, $4, $2, 1, $3, 1) ON CONFLICT (id) DO NOTHING RETURNING seq";

/// Records a commit that was not taken by [`COMMIT_IF_NEXT`].
pub(super) const KEEP_COMMIT: &str = "INSERT INTO steward_commits VALUES ($1, $2, $3, now())";

/// Moves the head past all copies. Call it with the head locked.
pub(super) const MOVE_HORIZON: &str = "UPDATE steward_head \
     SET seq = seq + 1, name = $1, format = $2, horizon = seq + 1 WHERE id = 1 RETURNING seq";

/// Removes all rows, without leaving a trace of them.
pub(super) const DELETE_ROWS: &str = "DELETE FROM steward_rows";

/// Moves the horizon to `$1` commits before the last one. It never moves back.
pub(super) const ADVANCE_HORIZON: &str = "UPDATE steward_head \
     SET horizon = greatest(horizon, seq - $1) WHERE id = 1 RETURNING horizon";

/// Deletes the removed rows that every copy from the horizon `$1` on has taken.
pub(super) const DELETE_REMOVED: &str = "DELETE FROM steward_rows WHERE v IS NULL AND seq <= $1";

/// Deletes the commits before the horizon `$1`.
pub(super) const DELETE_COMMITS: &str = "DELETE FROM steward_commits WHERE seq < $1";

/// Deletes the nodes that were not seen for a month.
pub(super) const DELETE_NODES: &str =
    "DELETE FROM steward_nodes WHERE seen < now() - interval '30 days'";

/// Records that a node works. Returns the time, and that of the last heartbeat under this name. The parts that change no row
/// need the grants and the locks of a commit: a node whose commits would fail for their lack records nothing.
pub(super) const HEARTBEAT: &str = "WITH last AS (SELECT seen FROM steward_nodes WHERE name = $1), \
     may_move AS (UPDATE steward_head SET seq = seq WHERE false), \
     may_keep AS (INSERT INTO steward_commits SELECT * FROM steward_commits WHERE false), \
     may_put AS (INSERT INTO steward_rows SELECT * FROM steward_rows WHERE false \
                 ON CONFLICT (tab, k) DO UPDATE SET v = EXCLUDED.v, seq = EXCLUDED.seq) \
     INSERT INTO steward_nodes (name, release, seq, seen, problem) VALUES ($1, $2, $3, clock_timestamp(), $4) \
     ON CONFLICT (name) DO UPDATE SET release = EXCLUDED.release, seq = EXCLUDED.seq, seen = EXCLUDED.seen, \
     problem = EXCLUDED.problem \
     RETURNING seen, (SELECT seen FROM last)";

/// The nodes that sent heartbeats.
pub(super) const NODES: &str =
    "SELECT name, release, seq, seen, problem FROM steward_nodes ORDER BY name COLLATE \"C\"";

/// The settings of a session. A database that does not know a setting goes without it.
///
/// The time limits end a statement or a turn whose node or lock holder is frozen. A commit waits for longer than a turn lasts.
/// [`SINCE`] is planned once for all positions, and must then use the index: nearly always it finds nothing.
pub(super) const SESSION: [&str; 7] = [
    "SET lock_timeout = 4000",
    "SET statement_timeout = 5500",
    "SET idle_in_transaction_session_timeout = 3500",
    "SET default_transaction_isolation = 'read committed'",
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET jit = off",
];

/// Lifts the time limits of statements, for the transaction.
pub(super) const WITHOUT_LIMITS: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";

/// Lets the transaction wait for its node for ten minutes.
pub(super) const LONG_WAIT: &str = "SET LOCAL idle_in_transaction_session_timeout = 600000";

/// Returns how commits become durable, and keeps the session at that if the server's configuration changes.
pub(super) const DURABILITY: &str =
    "SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false)";

/// Which server this is: the identifier of its history, and its timeline, which the name of the current file of its log begins
/// with.
pub(super) const PRIMARY: &str = "SELECT (SELECT system_identifier FROM pg_control_system()), \
     ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4";

/// Whether a standby is attached and none is synchronous.
pub(super) const HAS_ONLY_ASYNCHRONOUS_STANDBYS: &str = "SELECT current_setting('synchronous_standby_names') = '' \
     AND EXISTS (SELECT FROM pg_stat_replication)";
