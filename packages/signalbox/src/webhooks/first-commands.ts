import type { FirstCommand } from "../area-module.ts";
import { genericScheme } from "./schemes/index.ts";
import type { Source } from "./source.ts";

/** A signed delivery with nothing but a shell, curl and openssl; shown once there is a secret to sign with. */
export function firstCommands(
  url: string,
  generic: Source,
  secretFile: string | undefined,
): readonly FirstCommand[] {
  // Another scheme than the default asks for more than a line of shell can make.
  if (generic.keys.length === 0 || generic.scheme !== genericScheme) return [];
  const secret = secretFile === undefined ? `\${${generic.secretVariable}%%,*}` : `$(cat '${secretFile}')`;
  const signature = `sha256=$(printf %s "$body" | openssl dgst -sha256 -hmac "${secret}" -r | cut -d' ' -f1)`;
  return [
    {
      title: "Send a signed webhook to the agent of the entity my-device",
      command: `body='{"type":"hello","id":"'$(date +%s)'"}'; curl -s ${url}/webhooks/my-device -H 'content-type: application/json' -H "x-signature: ${signature}" -d "$body"`,
    },
  ];
}
