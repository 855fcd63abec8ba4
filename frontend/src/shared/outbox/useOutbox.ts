import { useEffect, useSyncExternalStore } from "react";
import type { Outbox, Parcel } from "./outbox";

/** Sends what the box holds as long as the component is there: immediately, and again when the network or the person comes
 * back. For one component of a page; others see what is in it with `useParcels`. */
export function useOutbox<P extends Parcel>(box: Outbox<P>): readonly P[] {
  useEffect(() => {
    const wake = () => {
      if (document.visibilityState === "visible") void box.flush();
    };
    box.open();
    window.addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    return () => {
      window.removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
      box.close();
    };
  }, [box]);
  return useParcels(box);
}

export function useParcels<P extends Parcel>(box: Outbox<P>): readonly P[] {
  return useSyncExternalStore(box.subscribe, box.snapshot);
}
