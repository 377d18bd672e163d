import type { MediaSource } from "./neutral/part.ts";

const BASE64 = ";base64,";
/** A media type is short; a longer head is not searched, so that a megabyte of data without a comma costs nothing. */
const MAX_HEAD = 256;

/** The source that a URL stands for. The base64 text is a slice of `url`, not a copy. */
export function sourceOfUrl(url: string): MediaSource {
  if (!url.startsWith("data:")) return { kind: "url", url, mediaType: null };
  const head = url.slice(0, MAX_HEAD);
  const at = head.indexOf(BASE64);
  if (at < 0) return { kind: "url", url, mediaType: null };
  const mediaType = head.slice(5, at).split(";")[0] ?? "";
  return {
    kind: "base64",
    mediaType: mediaType === "" ? "application/octet-stream" : mediaType,
    data: url.slice(at + BASE64.length),
  };
}

export function urlOfSource(source: Exclude<MediaSource, { kind: "file" }>): string {
  return source.kind === "url" ? source.url : `data:${source.mediaType}${BASE64}${source.data}`;
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  html: "text/html",
  json: "application/json",
  mp3: "audio/mpeg",
  wav: "audio/wav",
};

/** The media type that the ending of a file name or URL stands for. */
export function mediaTypeOfName(name: string): string | null {
  const path = name.split(/[?#]/, 1)[0] ?? "";
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return Object.hasOwn(MEDIA_TYPES, ending) ? (MEDIA_TYPES[ending] ?? null) : null;
}
