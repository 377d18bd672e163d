/** Content types of static files by the ending of their names. */
/** A map, because visitors choose the endings: an object would also find `constructor`. */
const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    html: "text/html; charset=utf-8",
    htm: "text/html; charset=utf-8",
    css: "text/css; charset=utf-8",
    js: "text/javascript; charset=utf-8",
    mjs: "text/javascript; charset=utf-8",
    json: "application/json",
    map: "application/json",
    webmanifest: "application/manifest+json",
    txt: "text/plain; charset=utf-8",
    md: "text/markdown; charset=utf-8",
    csv: "text/csv; charset=utf-8",
    xml: "application/xml",
    svg: "image/svg+xml",
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
    avif: "image/avif",
    ico: "image/vnd.microsoft.icon",
    bmp: "image/bmp",
    woff: "font/woff",
    woff2: "font/woff2",
    ttf: "font/ttf",
    otf: "font/otf",
    mp3: "audio/mpeg",
    wav: "audio/wav",
    ogg: "audio/ogg",
    mp4: "video/mp4",
    webm: "video/webm",
    pdf: "application/pdf",
    wasm: "application/wasm",
    zip: "application/zip",
    gz: "application/gzip",
  }),
);

/** Null for an unknown ending. */
export function contentTypeOf(path: string): string | null {
  const dot = path.lastIndexOf(".");
  return TYPES.get(path.slice(dot + 1).toLowerCase()) ?? null;
}
