/** The wire formats ("dialects") that this package translates into each other. */
export type Dialect = "chat" | "messages" | "responses" | "gemini";
