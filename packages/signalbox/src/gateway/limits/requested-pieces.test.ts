import { describe, expect, it } from "vitest";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { RequestType, Step } from "../step/step.ts";
import { expectedPieces, requestedPieces } from "./requested-pieces.ts";

const OPENAI = { provider: { slug: "openai" }, model: "gpt-image-1" };
const whole = (text: string): RequestBody => ({ kind: "whole", bytes: Buffer.from(text) });
const piecesOf = (path: string, body: RequestBody, requestType: RequestType = "", choices = 1) =>
  requestedPieces({ path, requestType, choices, upstream: { body }, ...OPENAI } as Step);
const picture = (fields: object) => piecesOf("images/generations", whole(JSON.stringify(fields)), "images");

describe("the pieces that a request asks for", () => {
  it("of pictures are their number, with quality and size", () => {
    expect(picture({ quality: "hd", size: "1024x1792" })?.imageForm).toBe("hd 1024x1792");
    expect(picture({})?.imageForm).toBe("standard 1024x1024");
    const several = piecesOf("images/edits", whole("{}"), "images", 3);
    expect([several?.images, several?.tokensOut]).toEqual([3, 3 * 6240]);
  });

  it.each([
    [{ quality: "low", size: "1024x1024" }, 272],
    [{ quality: "medium", size: "1024x1536" }, 1584],
    [{ quality: "high", size: "1536x1024" }, 6240],
    [{ quality: "auto" }, 6240],
    [{ quality: "constructor", size: "1024x1024" }, 6240],
  ])("of a picture %j are %d tokens, for models that write tokens", (fields, tokens) => {
    expect(picture(fields)?.tokensOut).toBe(tokens);
  });

  it("have no tokens for a model that is billed by the piece", () => {
    const step = {
      path: "images/generations",
      requestType: "images",
      choices: 1,
      upstream: { body: whole("{}") },
    };
    const pieces = requestedPieces({ ...step, ...OPENAI, model: "dall-e-3" } as unknown as Step);
    expect([pieces?.images, pieces?.tokensIn, pieces?.tokensOut]).toEqual([1, 0, 0]);
  });

  it("of a form with two values of one field are of no known size", () => {
    const field = (name: string, value: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const twice = field("size", "1024x1024") + field("size", "256x256");
    expect(piecesOf("images/edits", whole(twice), "images")?.imageForm).toBe("standard ?");
  });

  it("of speech are the characters of the text", () => {
    expect(piecesOf("audio/speech", whole('{"input":"h\\u00e9 👋"}'), "audio")?.characters).toBe(4);
    expect(piecesOf("audio/speech", whole("{}"), "audio")).toBeNull();
  });

  it.each([
    ["elevenlabs", "v1/text-to-speech/voice", "text"],
    ["elevenlabs", "v1/text-to-speech/voice/stream/with-timestamps", "text"],
    ["deepgram", "v1/speak", "text"],
    ["cartesia", "tts/bytes", "transcript"],
  ])("of speech of %s at %s are the characters of %s", (slug, path, member) => {
    const body = whole(JSON.stringify({ [member]: "héllo" }));
    const pieces = requestedPieces({
      ...OPENAI,
      provider: { slug },
      path,
      requestType: "",
      upstream: { body },
    } as Step);
    expect(pieces?.characters).toBe(5);
  });

  it.each([
    ["elevenlabs", "v1/speech-to-text"],
    ["deepgram", "v1/listen"],
    ["cartesia", "stt"],
  ])("of sound of %s at %s are its seconds", (slug, path) => {
    const body = whole("x".repeat(4000));
    const pieces = expectedPieces({
      ...OPENAI,
      provider: { slug },
      path,
      requestType: "",
      upstream: { body },
    } as Step);
    expect(pieces.seconds).toBe(2);
  });

  it("of rankings are searches of up to a hundred documents", () => {
    const documents = (length: number) => whole(JSON.stringify({ documents: Array(length).fill("a") }));
    expect(piecesOf("v2/rerank", documents(0))?.rankings).toBe(1);
    expect(piecesOf("v2/rerank", documents(100))?.rankings).toBe(1);
    expect(piecesOf("v2/rerank", documents(101))?.rankings).toBe(2);
  });

  it("of Imagen are four pictures unless it is told otherwise", () => {
    const path = "v1beta/models/imagen-4.0-generate-001:predict";
    expect(piecesOf(path, whole("{}"))?.images).toBe(4);
    expect(piecesOf(path, whole('{"parameters":{"sampleCount":1}}'))?.images).toBe(1);
  });

  it("are unknown for other requests, and for one that was only partly read", () => {
    expect(piecesOf("chat/completions", whole("{}"), "chat")).toBeNull();
    const body: RequestBody = { kind: "streamed", start: Buffer.from("{}"), length: 9 } as RequestBody;
    expect(piecesOf("images/edits", body, "images")).toBeNull();
  });
});
