/** The message that a worker's `email` handler receives. */

/** Why the receiving server refuses the message; null: it accepts it. */
export interface EmailVerdict {
  rejection: string | null;
}

export interface IncomingEmail {
  readonly from: string;
  readonly to: string;
  /** The message as it was received (RFC 5322). */
  readonly raw: Buffer;
}

export function createEmailEvent({ from, to, raw }: IncomingEmail, verdict: EmailVerdict): object {
  const cannotSend = (method: string) => () => {
    throw new Error(`${method} of an email is not available on Signalbox: it needs a server that sends mail`);
  };
  return {
    from,
    to,
    headers: parseHeaders(raw),
    raw: new Response(new Uint8Array(raw)).body,
    rawSize: raw.length,
    canBeForwarded: false,
    setReject(reason: string) {
      verdict.rejection = reason;
    },
    forward: cannotSend("forward"),
    reply: cannotSend("reply"),
  };
}

/** The header section; a line that begins with white space continues the one before. Fields that are no valid headers are left out. */
function parseHeaders(raw: Buffer): Headers {
  const headers = new Headers();
  const text = raw.toString("latin1");
  const end = text.search(/\r?\n\r?\n/);
  const unfolded = text.slice(0, end === -1 ? text.length : end).replaceAll(/\r?\n[ \t]+/g, " ");
  for (const line of unfolded.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    try {
      headers.append(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
    } catch {
      // Not a header name or value.
    }
  }
  return headers;
}
