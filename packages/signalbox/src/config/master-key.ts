/**
 * The master keys of stored provider keys: `SIGNALBOX_MASTER_KEY`, or the content of the file that `SIGNALBOX_MASTER_KEY_FILE` names. A key is 32
 * bytes in hex or base64; several are separated by commas or lines during a rotation, the current one first.
 */
import { readFileSync } from "node:fs";
import { Secret } from "../core/secret.ts";
import { ConfigError } from "../core/config-error.ts";

const KEY_BYTES = 32;
const NAME = "SIGNALBOX_MASTER_KEY";

export function readMasterKeys(environment: Readonly<Record<string, string | undefined>>): Secret[] {
  const text = environment[NAME] ?? "";
  const file = environment[`${NAME}_FILE`] ?? "";
  if (text.trim() !== "" && file !== "") {
    throw new ConfigError(`${NAME} and ${NAME}_FILE: expected one of them, found both`);
  }
  if (file === "") return parseKeys(NAME, text);
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (cause) {
    throw new ConfigError(`${NAME}_FILE: cannot read ${file}`, { cause });
  }
  const keys = parseKeys(`${NAME}_FILE`, content);
  if (keys.length === 0) throw new ConfigError(`${NAME}_FILE: expected a key in ${file}, found none`);
  return keys;
}

function parseKeys(name: string, text: string): Secret[] {
  return text.split(/[\s,]+/).flatMap((part) => (part === "" ? [] : [toKey(name, part)]));
}

/** One spelling for a key, so that hex and base64 of the same bytes are the same key. */
function toKey(name: string, text: string): Secret {
  const isHex = /^[0-9a-f]{64}$/i.test(text);
  const bytes = isHex || /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, isHex ? "hex" : "base64") : null;
  if (bytes?.length !== KEY_BYTES) {
    throw new ConfigError(
      `${name}: expected ${KEY_BYTES} bytes in hex (64 characters) or base64 (44 characters) per key, found ${text.length} characters`,
    );
  }
  return new Secret(bytes.toString("hex"));
}
