import type { FirstCommand } from "../area-module.ts";
import { genericScheme } from "./schemes/index.ts";
import type { Source } from "./source.ts";

/** A command that sends a signed delivery with a shell, curl and openssl. None without a secret. */
export function firstCommands(
  url: string,
  generic: Source,
  secretFile: string | undefined,
): readonly FirstCommand[] {
  // The signatures of other schemes do not fit on one line of shell.
  if (generic.keys.length === 0 || generic.scheme !== genericScheme) return [];
  const secret = secretFile === undefined ? `\${${generic.secretVariable}%%,*}` : `$(cat '${secretFile}')`;
  const signature = `sha256=$(printf %s "$body" | openssl dgst -sha256 -hmac "${secret}" -r | cut -d' ' -f1)`;
  return [
    {
      title: "Send a signed webhook for the entity my-device to its agent",
      command: `body='{"type":"hello","id":"'$(date +%s)'"}'; curl -s ${url}/webhooks/my-device -H 'content-type: application/json' -H "x-signature: ${signature}" -d "$body"`,
    },
  ];
}
