import { beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "../../api/client";
import { Outbox, type Parcel } from "./outbox";
import { LockedTabs } from "./tabs";

const parcel = (n: number): Parcel => ({ submission: `s${n}` });

describe("Outbox", () => {
  beforeEach(() => {
    localStorage.clear();
    vi.useFakeTimers();
  });

  it("keeps what could not be sent, over a reload too, and sends it in order when it can", async () => {
    let online = false;
    const sent: string[] = [];
    const send = async (one: Parcel) => {
      if (!online) throw Problem.unreachable();
      sent.push(one.submission);
    };
    const first = new Outbox("box", send);
    first.add(parcel(1));
    first.add(parcel(2));
    await vi.advanceTimersByTimeAsync(3000);
    expect(first.stuck).toBe(true);
    first.close();

    const second = new Outbox("box", send);
    expect(second.waiting.map((one) => one.submission)).toEqual(["s1", "s2"]);
    online = true;
    await second.flush();
    expect(sent).toEqual(["s1", "s2"]);
    expect(second.all).toEqual([]);
    expect(localStorage.getItem("box")).toBe("[]");
  });

  it("tries again by itself", async () => {
    let tries = 0;
    const box = new Outbox("box", async () => {
      tries += 1;
      if (tries < 4) throw new Problem(503, "unavailable", "Busy", "");
    });
    box.add(parcel(1));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(tries).toBe(4);
    expect(box.stuck).toBe(false);
  });

  it("keeps what the server refuses for good, and continues with the others", async () => {
    const sent: string[] = [];
    const box = new Outbox("box", async (one) => {
      if (one.submission === "s1") throw new Problem(409, "lock_lost", "Lost", "Others ranked it.");
      sent.push(one.submission);
    });
    box.add(parcel(1));
    box.add(parcel(2));
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual(["s2"]);
    expect(box.all.map((one) => one.refused)).toEqual(["Others ranked it."]);
    box.forget("s1");
    expect(box.all).toEqual([]);
  });

  it("tries again what is too early for an answer that is still written, and sends the others meanwhile", async () => {
    const sent: string[] = [];
    let written = false;
    const box = new Outbox("box", async (one) => {
      if (one.submission === "s1" && !written) throw new Problem(409, "answers_missing", "Not yet", "");
      sent.push(one.submission);
    });
    box.add(parcel(1));
    box.add(parcel(2));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent).toEqual(["s2"]);
    expect(box.all.map((one) => [one.submission, one.refused])).toEqual([["s1", undefined]]);
    expect(box.stuck).toBe(true);
    written = true;
    await vi.advanceTimersByTimeAsync(15_000);
    expect([sent, box.all]).toEqual([["s2", "s1"], []]);
  });

  it("keeps what a proxy answers in the server's place", async () => {
    let tries = 0;
    const box = new Outbox("box", async () => {
      tries += 1;
      if (tries === 1) throw await Problem.of(new Response("404 page not found", { status: 404 }));
    });
    box.add(parcel(1));
    await vi.advanceTimersByTimeAsync(0);
    expect(box.all.map((one) => one.refused)).toEqual([undefined]);
    await vi.advanceTimersByTimeAsync(1000);
    expect([tries, box.all.length]).toEqual([2, 0]);
  });

  it("sends what a full storage cannot keep", async () => {
    const sent: string[] = [];
    const full = {
      getItem: () => null,
      setItem: () => {
        throw new Error("full");
      },
    } as unknown as Storage;
    const box = new Outbox<Parcel>("box", async (one) => void sent.push(one.submission), full);
    box.add(parcel(1));
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual(["s1"]);
  });

  it("leaves to another open tab what it sends, and sends what it left when it is closed", async () => {
    const locks = new Locks();
    const sent: string[] = [];
    const theirs = locks.tab();
    const other = new Outbox(
      "box",
      async () => {
        throw Problem.unreachable();
      },
      localStorage,
      theirs.tabs,
    );
    const send = async (one: Parcel) => void sent.push(one.submission);
    const mine = new Outbox("box", send, localStorage, locks.tab().tabs);
    mine.open();
    const third = new Outbox("box", send, localStorage, locks.tab().tabs);
    third.open();
    other.add(parcel(1));
    window.dispatchEvent(new StorageEvent("storage", { key: "box" }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([sent, mine.all]).toEqual([[], []]);

    other.close();
    theirs.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual(["s1"]);
    expect(localStorage.getItem("box")).toBe("[]");
  });

  it("gives back what has not arrived", async () => {
    const box = new Outbox("box", async () => {
      throw Problem.unreachable();
    });
    box.add(parcel(1));
    box.add(parcel(2));
    await vi.advanceTimersByTimeAsync(0);
    expect(await box.takeBack("s2")).toBe(true);
    expect(box.waiting.map((one) => one.submission)).toEqual(["s1"]);
    expect(await box.takeBack("s9")).toBe(false);
  });

  it("waits for pending submissions before it reports whether they can be undone", async () => {
    let arrive = () => {};
    const box = new Outbox("box", () => new Promise<void>((done) => (arrive = done)));
    box.add(parcel(1));
    const back = box.takeBack("s1");
    arrive();
    expect(await back).toBe(false);
    expect(box.all).toEqual([]);
  });
});

/** Locks as browsers have them, held until their tab closes. */
class Locks {
  private readonly held = new Set<string>();
  private readonly queued: { name: string; run: () => void }[] = [];

  tab(): { tabs: LockedTabs; close: () => void } {
    const mine: string[] = [];
    const request = async (name: string, then: () => unknown) => {
      const run = () => {
        if (this.held.has(name)) return void this.queued.push({ name, run });
        if (then() instanceof Promise) {
          this.held.add(name);
          mine.push(name);
        }
      };
      await Promise.resolve();
      run();
    };
    const tabs = new LockedTabs({ request } as unknown as LockManager);
    const close = () => {
      for (const name of mine) this.held.delete(name);
      for (const { run } of this.queued.splice(0)) run();
    };
    return { tabs, close };
  }
}
