/** An invalid setting. The message is one line with the setting, the expected and the found value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
