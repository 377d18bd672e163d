/**
 * Pictures, sound and films: content that a rule on texts has nothing to search in. What they are is read from their first bytes, not from what the
 * sender says of them, so that a document does not pass under another name. Documents are none: they hold text.
 */

const HEAD_BYTES = 16;
/** Readers of PDF look for its beginning in so many bytes. */
const DOCUMENT_BYTES = 1024;
// Bytes, each as the character of its number.
/* eslint-disable no-control-regex */
const STARTS: readonly RegExp[] = [
  // PNG, JPEG, GIF, BMP with its four reserved bytes, TIFF, icons, JPEG XL
  /^\x89PNG\r\n\x1a\n/,
  /^\xff\xd8\xff/,
  /^GIF8[79]a/,
  /^BM[^]{4}\0{4}/,
  /^(?:II\*\0|MM\0\*)/,
  /^\0\0[\x01\x02]\0/,
  /^(?:\xff\x0a|\0\0\0\x0cJXL )/,
  // WebP, WAV, AVI; everything of the ISO container: HEIC, AVIF, MP4, M4A, MOV
  /^RIFF[^]{4}(?:WEBP|WAVE|AVI )/,
  /^[^]{4}ftyp/,
  // MP3, AAC, Ogg, FLAC, AMR, AIFF, Matroska and WebM, MPEG
  /^(?:ID3[\x02-\x04]|\xff[\xe2\xe3\xf1-\xf3\xf9-\xfb])/,
  /^OggS\0/,
  /^fLaC/,
  /^#!AMR/,
  /^FORM[^]{4}AIF[FC]/,
  /^\x1aE\xdf\xa3/,
  /^\0\0\x01[\xba\xb3]/,
];
/* eslint-enable no-control-regex */

/** Whether the bytes, or the beginning of them, are a picture, sound or a film. */
export function isMedia(bytes: Buffer): boolean {
  const head = bytes.toString("latin1", 0, HEAD_BYTES);
  if (bytes.subarray(0, DOCUMENT_BYTES).includes("%PDF")) return false;
  return STARTS.some((start) => start.test(head));
}
