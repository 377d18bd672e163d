/** Properties of the response parser over generated and damaged responses (invariants 1 and 2). */
import fc from "fast-check";
import { expect, it } from "vitest";
import { ResponseParser } from "./response-parser.ts";
import { UpstreamFailure } from "./upstream.ts";

interface Reading {
  readonly outcome: "complete" | "cut short" | "refused";
  readonly heads: readonly string[];
  readonly body: string;
  readonly canReuse: boolean;
}

const MAX_HEAD_BYTES = 2048;

/** Reads a response to its end. Also checks what holds for any input: the order of events, and at most one body event for each read. */
function read(reads: readonly string[], isHeadRequest = false): Reading {
  const parser = new ResponseParser(MAX_HEAD_BYTES);
  const heads: string[] = [];
  let body = "";
  let eventsInRead = 0;
  let ends = 0;
  parser.begin(
    {
      onHead: ({ status, rawHeaders }) => heads.push(JSON.stringify([status, rawHeaders])),
      onBody(chunk, isLast) {
        eventsInRead += 1;
        if (heads.length !== 1 || ends > 0 || eventsInRead > 1) throw new Error("a body event out of order");
        body += chunk.toString("latin1");
        if (isLast) ends += 1;
      },
    },
    isHeadRequest,
  );
  try {
    for (const bytes of reads) {
      eventsInRead = 0;
      if (!parser.isDone) parser.push(Buffer.from(bytes, "latin1"));
    }
    eventsInRead = 0;
    const isComplete = parser.finish();
    if (ends !== (isComplete ? 1 : 0)) throw new Error(`${ends} ends`);
    return { outcome: isComplete ? "complete" : "cut short", heads, body, canReuse: parser.canReuse };
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return { outcome: "refused", heads, body: "", canReuse: false };
  }
}

function split(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => text.slice(from, at[i]));
}

const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const bytes = (maxLength: number) => fc.array(byte, { maxLength }).map((all) => all.join(""));
const cuts = fc.array(fc.nat({ max: 600 }), { maxLength: 10 });
const headers = fc
  .array(
    fc.tuple(
      fc.constantFrom("Server", "X-A", "Content-Type", "Keep-Alive"),
      fc.constantFrom("", "a b", "\xe9"),
    ),
    { maxLength: 4 },
  )
  .map((all) => all.map(([name, value]) => `${name}: ${value}\r\n`).join(""));
const early = fc.constantFrom(
  "",
  "",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
);

const fixed = fc.tuple(early, headers, bytes(120)).map(([informational, fields, body]) => ({
  wire: `${informational}HTTP/1.1 200 OK\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`,
  body,
}));
const chunked = fc
  .tuple(
    early,
    headers,
    fc.array(bytes(40), { maxLength: 5 }),
    fc.constantFrom("", ";a=b"),
    fc.constantFrom("", "T: x\r\n"),
  )
  .map(([informational, fields, parts, extension, trailer]) => {
    const chunks = parts.filter((part) => part !== "");
    const framed = chunks.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join("");
    return {
      wire: `${informational}HTTP/1.1 200 OK\r\n${fields}Transfer-Encoding: chunked\r\n\r\n${framed}0\r\n${trailer}\r\n`,
      body: chunks.join(""),
    };
  });
const response = fc.oneof(fixed, chunked);

it("reads the body of any well-formed response, however it is split, and reuses the connection", () => {
  fc.assert(
    fc.property(response, cuts, ({ wire, body }, at) => {
      const whole = read([wire]);
      expect(whole).toMatchObject({ outcome: "complete", body, canReuse: true });
      expect(read(split(wire, at))).toEqual(whole);
      expect(read(wire.split(""))).toEqual(whole);
    }),
  );
});

it("reports every proper prefix of a response as cut short", () => {
  fc.assert(
    fc.property(response, fc.nat(), cuts, ({ wire }, length, at) => {
      const prefix = wire.slice(0, length % wire.length);
      expect(read(split(prefix, at))).toMatchObject({ outcome: "cut short", canReuse: false });
    }),
  );
});

it("does not reuse a connection when bytes follow the response in the same read", () => {
  fc.assert(
    fc.property(response, bytes(20), ({ wire, body }, extra) => {
      expect(read([wire + extra])).toMatchObject({ outcome: "complete", body, canReuse: extra === "" });
    }),
  );
});

/** Bytes that framing is made of, which damage it in more ways than random ones. */
const significant = fc.oneof(
  byte,
  fc.constantFrom("\r", "\n", "\r\n", " ", "\t", ":", "0", "a", ";", ",", "\0"),
);
const mutation = fc.tuple(fc.constantFrom("insert", "replace", "delete"), fc.nat(), significant);

function mutate(text: string, mutations: readonly (readonly [string, number, string])[]): string {
  let mutated = text;
  for (const [kind, place, inserted] of mutations) {
    const at = place % (mutated.length + 1);
    const after = mutated.slice(kind === "insert" ? at : at + 1);
    mutated = mutated.slice(0, at) + (kind === "delete" ? "" : inserted) + after;
  }
  return mutated;
}

it("reads a damaged response the same way however it is split, and never fails in another way than by refusing it", () => {
  fc.assert(
    fc.property(
      response,
      fc.array(mutation, { minLength: 1, maxLength: 4 }),
      cuts,
      fc.boolean(),
      ({ wire }, mutations, at, isHead) => {
        const damaged = mutate(wire, mutations);
        const whole = read([damaged], isHead);
        const parts = read(split(damaged, at), isHead);
        expect({ ...parts, heads: [], canReuse: false }).toEqual({ ...whole, heads: [], canReuse: false });
        if (whole.outcome !== "refused") expect(parts.heads).toEqual(whole.heads);
      },
    ),
    { numRuns: 600 },
  );
});

it("never delivers more than the bytes it received, whatever they are", () => {
  fc.assert(
    fc.property(fc.array(bytes(60), { maxLength: 6 }), (reads) => {
      expect(read(reads).body.length).toBeLessThanOrEqual(reads.join("").length);
    }),
  );
});
