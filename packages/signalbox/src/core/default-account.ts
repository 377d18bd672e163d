/** The account that exists from the first start, and that is meant where nothing names another. */
export const DEFAULT_ACCOUNT = "default";
