-- A row that nothing else writes to: asking whether writes are kept must not make anyone wait.
CREATE TABLE readiness (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    checked_at BIGINT NOT NULL
);
INSERT INTO readiness (id, checked_at) VALUES (1, 0);
