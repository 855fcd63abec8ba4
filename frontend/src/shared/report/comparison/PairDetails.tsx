import { Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Facts } from "../../Facts";
import { count } from "../../format/format";
import type { ItemsSearch } from "../../search";
import { asPercent, Figure, pValue } from "../Figure";
import { ItemsLink, type SourceName } from "../ItemsLink";
import type { Pair } from "./pairs";

/** One pair of entrants by one source; its figures lead to their items. */
export function PairDetails({ pair, source }: { pair: Pair; source?: SourceName }) {
  const items = (figure: ReactNode, search: ItemsSearch = {}) =>
    source ? <ItemsLink search={{ a: pair.a, b: pair.b, source, ...search }}>{figure}</ItemsLink> : figure;
  const counted = (n: number, outcome: ItemsSearch["outcome"]) => {
    const text = count(Number(n.toFixed(1)));
    return n ? items(text, { outcome }) : text;
  };
  return (
    <section aria-label={`${pair.a} against ${pair.b}`}>
      <Title order={4} size="h6" mb="xs" style={{ overflowWrap: "anywhere" }}>
        {pair.a} against {pair.b}
      </Title>
      <Facts
        columns={3}
        facts={[
          [
            "Wins / ties / losses",
            <Text key="counts" span inherit>
              {counted(pair.wins, "win")} / {counted(pair.ties, "tie")} / {counted(pair.losses, "loss")}
            </Text>,
          ],
          ["Win rate", items(<Figure of={pair.win_rate} format={asPercent} />)],
          [
            "Length-matched win rate",
            items(<Figure of={pair.length_matched} format={asPercent} />, { length: "similar" }),
          ],
          [
            "Length-adjusted win rate",
            <Figure key="adjusted" of={pair.length_adjusted} format={asPercent} />,
          ],
          ["Difference", <Figure key="difference" of={pair.difference} />],
          ["p, Holm", pValue(pair.p_holm), pair.significant ? "significant" : "not significant"],
          ["p, Wilcoxon", pValue(pair.p)],
        ]}
      />
    </section>
  );
}
