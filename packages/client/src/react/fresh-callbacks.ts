/** Gives effects the callbacks of the latest render without running again. */
import { type RefObject, useInsertionEffect, useRef } from "react";

/** A ref with the callbacks of the last committed render. Written before effects run, so that no effect uses older callbacks. */
export function useFresh<Value>(value: Value): Readonly<RefObject<Value>> {
  const ref = useRef(value);
  useInsertionEffect(() => {
    ref.current = value;
  });
  return ref;
}
