/** The account that the first start creates, and the default where no account is given. */
export const DEFAULT_ACCOUNT = "default";
