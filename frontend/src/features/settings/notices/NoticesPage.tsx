import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { changeRule, deleteRule, rulesQuery } from "../../../api/accounts/notices";
import { OwnersOnly } from "../OwnersOnly";
import { ManagedList } from "../ManagedList";
import { Deliveries } from "./Deliveries";
import { RuleCard } from "./RuleCard";
import { RuleForm } from "./RuleForm";

const route = getRouteApi("/p/$project/settings/notices");

export function NoticesPage() {
  return (
    <OwnersOnly what="Notices">
      <Notices />
    </OwnersOnly>
  );
}

function Notices() {
  const { project } = route.useParams();
  const { of } = route.useSearch();
  const rules = useQuery(rulesQuery(project));
  const shown = rules.data?.find((rule) => rule.name === of);
  if (shown) return <Deliveries project={project} rule={shown} />;
  return (
    <ManagedList
      query={rulesQuery(project)}
      about={`Each rule reports some events of ${project} to a server by webhook, to a Slack channel, or to people by e-mail. If there is no answer, Steerboard tries again for about a day.`}
      label="Notice rules"
      create="Create a rule"
      none={{
        title: "No notice rules yet",
        text: "With one, your team, chat or CI hears when a pipeline ends or a run breaks a health rule.",
      }}
      deleting="All of its deliveries are deleted, including pending ones, and a webhook's secret. To send nothing for a while, switch it off instead."
      activate={(rule, active) => changeRule(project, rule.id, { active })}
      remove={(rule) => deleteRule(project, rule.id)}
      card={(rule, actions) => <RuleCard project={project} rule={rule} {...actions} />}
      form={(rule, onDone) => <RuleForm project={project} rule={rule} onDone={onDone} />}
    />
  );
}
