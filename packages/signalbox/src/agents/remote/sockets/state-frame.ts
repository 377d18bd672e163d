/** Recognises the frames that tell a client the state, so that a state that the client has is not sent again after a move. */
const PREFIX = Buffer.from('{"type":"cf_agent_state","state":');
const FINAL_TEXT = 0x81;

let lastFrame: Buffer | null = null;
let wasState = false;

/** `frame` is a whole WebSocket frame of the server. The answer for the last frame is kept: a broadcast asks for each receiver. */
export function isStateFrame(frame: Buffer): boolean {
  if (frame === lastFrame) return wasState;
  lastFrame = frame;
  wasState = hasPrefix(frame);
  return wasState;
}

function hasPrefix(frame: Buffer): boolean {
  if (frame[0] !== FINAL_TEXT) return false;
  const length = frame[1] ?? 0;
  const start = length < 126 ? 2 : length === 126 ? 4 : 10;
  return frame.length >= start + PREFIX.length && PREFIX.compare(frame, start, start + PREFIX.length) === 0;
}

/** True for a message of a client that may be a new state. */
export function mayBeState(message: string | Buffer): boolean {
  return typeof message === "string" && message.includes("cf_agent_state");
}
