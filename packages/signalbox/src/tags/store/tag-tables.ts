/** The scope of transactions on the tag tables, which no other area uses. All accounts share one scope. See docs/decisions/0030. */
export const TAG_TABLES = { scope: "tags" };
