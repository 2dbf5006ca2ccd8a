-- Times are unix milliseconds, 0 = none. Seeds are the bits of a uint64.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE studies (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  study      TEXT NOT NULL, -- JSON
  source     TEXT NOT NULL, -- the study file as written
  paused     INTEGER NOT NULL DEFAULT 0,
  archived   INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE arms (
  study  INTEGER NOT NULL REFERENCES studies(id),
  idx    INTEGER NOT NULL,
  label  TEXT NOT NULL,
  levels TEXT NOT NULL, -- JSON
  recipe TEXT NOT NULL, -- JSON
  hash   TEXT NOT NULL,
  PRIMARY KEY (study, idx)
) STRICT, WITHOUT ROWID;

-- The runs table is the queue.
CREATE TABLE runs (
  id          INTEGER PRIMARY KEY,
  study       INTEGER NOT NULL REFERENCES studies(id),
  arm         INTEGER NOT NULL,
  seed        INTEGER NOT NULL,
  state       TEXT NOT NULL,
  cause       TEXT NOT NULL DEFAULT '',
  attempt     INTEGER NOT NULL DEFAULT 0,
  phase       TEXT NOT NULL DEFAULT '',
  step        INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL DEFAULT 0,
  device      TEXT NOT NULL DEFAULT '',
  queued_at   INTEGER NOT NULL DEFAULT 0,
  started_at  INTEGER NOT NULL DEFAULT 0,
  ended_at    INTEGER NOT NULL DEFAULT 0,
  heard_at    INTEGER NOT NULL DEFAULT 0,
  UNIQUE (study, arm, seed),
  FOREIGN KEY (study, arm) REFERENCES arms(study, idx)
) STRICT;
CREATE INDEX runs_state ON runs(state);

CREATE TABLE attempts (
  run          INTEGER NOT NULL REFERENCES runs(id),
  number       INTEGER NOT NULL,
  dir          TEXT NOT NULL, -- relative to the data folder when inside it
  device       TEXT NOT NULL DEFAULT '',
  pid          INTEGER NOT NULL DEFAULT 0,
  offset       INTEGER NOT NULL DEFAULT 0, -- bytes of events.jsonl stored
  segment      INTEGER NOT NULL DEFAULT 0, -- how often the file was replaced
  main         INTEGER NOT NULL DEFAULT 1, -- the current phase is the run's progress
  first_step   INTEGER NOT NULL DEFAULT 0,
  state        TEXT NOT NULL,
  exit_code    INTEGER,
  signal       TEXT NOT NULL DEFAULT '',
  cause        TEXT NOT NULL DEFAULT '',
  started_at   INTEGER NOT NULL DEFAULT 0,
  ended_at     INTEGER NOT NULL DEFAULT 0,
  hello        TEXT, -- JSON
  done         TEXT, -- JSON
  points       INTEGER NOT NULL DEFAULT 0,
  malformed    INTEGER NOT NULL DEFAULT 0,
  unknown      INTEGER NOT NULL DEFAULT 0,
  overflow     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE phases (
  id      INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  name    TEXT NOT NULL,
  step    INTEGER NOT NULL,
  total   INTEGER NOT NULL,
  main    INTEGER NOT NULL,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX phases_run ON phases(run);

-- Metric names and the words that trajectories repeat, each stored once.
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;

-- Live points: one row is one batch of one attempt, all its metrics together.
-- A background job moves them into chunks and deletes them here, in one
-- transaction.
CREATE TABLE tail (
  id      INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  body    BLOB NOT NULL
) STRICT;
CREATE INDEX tail_run ON tail(run);

-- Points at rest: one row is up to 1,024 points of one metric of one attempt.
CREATE TABLE chunks (
  id      INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL,
  name    INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  first   INTEGER NOT NULL, -- smallest step
  last    INTEGER NOT NULL, -- largest step
  n       INTEGER NOT NULL,
  brief   BLOB NOT NULL,    -- its first, smallest, largest and last point; empty when not all are finite
  body    BLOB NOT NULL
) STRICT;
CREATE INDEX chunks_series ON chunks(run, name);

-- What is known of each series without reading its points.
CREATE TABLE series (
  run        INTEGER NOT NULL,
  name       INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  segment    INTEGER NOT NULL,
  n          INTEGER NOT NULL,
  first      INTEGER NOT NULL, -- smallest step
  last       INTEGER NOT NULL, -- largest step, with its time and value
  last_wall  INTEGER NOT NULL,
  last_value REAL,             -- NULL is NaN
  ordered    INTEGER NOT NULL, -- each step larger than the one before
  PRIMARY KEY (run, name, attempt, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE queries (
  id   INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (hash, text)
) STRICT;

-- Heads are narrow, so that any filter can scan them; bodies lie apart.
CREATE TABLE trajectories (
  seq          INTEGER PRIMARY KEY,
  run          INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  study        INTEGER NOT NULL,
  arm          INTEGER NOT NULL,
  step         INTEGER NOT NULL,
  phase        INTEGER NOT NULL, -- a word, as are policy, mode, level and ending
  policy       INTEGER NOT NULL,
  mode         INTEGER NOT NULL,
  level        INTEGER NOT NULL,
  ending       INTEGER NOT NULL,
  rollout      INTEGER NOT NULL,
  reward       REAL NOT NULL,
  advantage    REAL,
  success      INTEGER NOT NULL,
  format_error INTEGER NOT NULL,
  overlong     INTEGER NOT NULL,
  turns        INTEGER NOT NULL,
  tokens       INTEGER NOT NULL,
  tool_calls   INTEGER NOT NULL,
  injected     INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  query        INTEGER NOT NULL,
  failed       TEXT NOT NULL, -- words of the failed checks: ",3,7,"
  tools        TEXT NOT NULL, -- words of the tools called
  grp          TEXT NOT NULL,
  tid          TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX trajectories_id ON trajectories(run, tid);
CREATE INDEX trajectories_study ON trajectories(study);

CREATE TABLE bodies (
  seq  INTEGER PRIMARY KEY,
  n    INTEGER NOT NULL, -- bytes of the line
  body BLOB NOT NULL     -- the line as written, zstd
) STRICT;

CREATE VIRTUAL TABLE trajectory_text USING fts5 (
  query, tools, answer,
  content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TABLE evaluations (
  run     INTEGER NOT NULL,
  panel   TEXT NOT NULL,
  policy  TEXT NOT NULL,
  mode    TEXT NOT NULL,
  step    INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  hash    TEXT NOT NULL,
  queries BLOB NOT NULL, -- JSON, zstd
  PRIMARY KEY (run, panel, policy, mode, step)
) STRICT;

CREATE TABLE checkpoints (
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  path    TEXT NOT NULL,
  sha256  TEXT NOT NULL,
  bytes   INTEGER NOT NULL,
  best    INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (run, attempt, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
  run        INTEGER NOT NULL, -- that reported it
  kind       TEXT NOT NULL,
  hash       TEXT NOT NULL,
  path       TEXT NOT NULL,
  bytes      INTEGER NOT NULL,
  maker      INTEGER NOT NULL, -- the run that made it
  step       INTEGER NOT NULL,
  provenance TEXT NOT NULL, -- JSON
  created_at INTEGER NOT NULL,
  PRIMARY KEY (run, kind, hash)
) STRICT;

CREATE TABLE alerts (
  id      INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  level   TEXT NOT NULL,
  code    TEXT NOT NULL,
  text    TEXT NOT NULL,
  step    INTEGER NOT NULL,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX alerts_run ON alerts(run);

-- Lines of events that could not be read; the first thousand of an attempt.
CREATE TABLE faults (
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  line    INTEGER NOT NULL,
  offset  INTEGER NOT NULL,
  cause   TEXT NOT NULL,
  text    TEXT NOT NULL
) STRICT;
CREATE INDEX faults_run ON faults(run);
