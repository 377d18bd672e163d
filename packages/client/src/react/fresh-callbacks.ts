/** Callbacks of the newest render without being a reason to run an effect again. */
import { type RefObject, useInsertionEffect, useRef } from "react";

/** A ref that holds what the last committed render passed. Written before any effect runs, so that no effect sees older ones. */
export function useFresh<Value>(value: Value): Readonly<RefObject<Value>> {
  const ref = useRef(value);
  useInsertionEffect(() => {
    ref.current = value;
  });
  return ref;
}
