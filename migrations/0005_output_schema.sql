-- What the answer of a turn is to fit, so that it is judged the same after a restart.

-- A JSON Schema as compact JSON, as the caller gave it; NULL: none was asked for. What the answer came
-- to is not kept: OpenCode's messages tell, and it is judged again.
ALTER TABLE turns ADD COLUMN output_schema TEXT;
