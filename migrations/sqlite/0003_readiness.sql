-- A row that nothing else writes to: asking whether writes are kept must not make anyone wait.
CREATE TABLE readiness (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL
) STRICT;
INSERT INTO readiness (id, checked_at) VALUES (1, 0);
