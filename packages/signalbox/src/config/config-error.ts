/** A setting that cannot be used; the message is one line that names the setting, what was expected and what was found. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
