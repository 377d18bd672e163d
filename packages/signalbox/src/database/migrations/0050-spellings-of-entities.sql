-- compatible-from: 0041
-- The exact text of the entity that owns a name; entity is that text folded. Null until an exact text arrives, and in rows of earlier versions, which
-- knew the folded text only: the first exact text that is equal when folded takes the row.
ALTER TABLE webhook_claim ADD COLUMN spelling TEXT;
