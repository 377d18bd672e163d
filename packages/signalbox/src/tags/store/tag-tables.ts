/** The scope of transactions on the tables of tags, which no other area touches. All accounts share it: numbers of batches are not worth more. */
export const TAG_TABLES = { scope: "tags" };
