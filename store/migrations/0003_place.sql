-- Where a person put a run among those of equal priority: 0 = by its age.
ALTER TABLE runs ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
