import { randomId } from "../../api/randomId";

/** Knows this tab from the others that are open, and when one of them closes. */
export interface Tabs {
  /** The id of this tab. */
  readonly id: string;
  /** Calls `then` when the tab `id` is closed, however that happened, and in one tab at a time. */
  whenClosed(id: string, then: () => void): void;
}

const lockOf = (id: string) => `steerboard.tab.${id}`;

/** Each tab holds a lock of its own as long as it is open. */
export class LockedTabs implements Tabs {
  readonly id = randomId();

  constructor(private readonly locks: LockManager) {
    void locks.request(lockOf(this.id), () => new Promise(() => {}));
  }

  whenClosed(id: string, then: () => void): void {
    void this.locks.request(lockOf(id), then);
  }
}

/** By plain http browsers have no locks. There, what is found in the storage counts as left by a closed tab. */
class UnknownTabs implements Tabs {
  readonly id = randomId();

  whenClosed(_id: string, then: () => void): void {
    then();
  }
}

export const thisTab: Tabs = navigator.locks ? new LockedTabs(navigator.locks) : new UnknownTabs();
