-- The queue's order and who may not start yet; what an attempt's end proves
-- and what it used; the steps that an alert is about.
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0; -- larger first
ALTER TABLE runs ADD COLUMN hold     TEXT    NOT NULL DEFAULT ''; -- why a queued run may not start; '' = it may
ALTER TABLE runs ADD COLUMN ready_at INTEGER NOT NULL DEFAULT 0; -- it may not start before

ALTER TABLE attempts ADD COLUMN code     TEXT NOT NULL DEFAULT ''; -- stable key of the cause
ALTER TABLE attempts ADD COLUMN evidence TEXT NOT NULL DEFAULT ''; -- the lines that prove it
ALTER TABLE attempts ADD COLUMN device_s REAL NOT NULL DEFAULT 0;  -- GPU-seconds held
ALTER TABLE attempts ADD COLUMN energy_j REAL NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN cost     REAL NOT NULL DEFAULT 0;

ALTER TABLE alerts ADD COLUMN since INTEGER NOT NULL DEFAULT 0; -- first step it is about; 0 = only its step
ALTER TABLE alerts ADD COLUMN late  INTEGER NOT NULL DEFAULT 0; -- found while catching up
