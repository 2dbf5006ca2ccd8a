package slurm

import (
	"fmt"
	"strings"
)

// reasons are words for what Slurm says of a job that waits. The first whose
// mark begins Slurm's own words holds. Never means that waiting
// does not help.
var reasons = []struct {
	mark  string
	words string
	never bool
}{
	{mark: "Priority", words: "other jobs come first"},
	{mark: "Resources", words: "what it asks for is in use"},
	{mark: "ReqNodeNotAvail", words: "its nodes are down, drained or reserved"},
	{mark: "Nodes required for job are DOWN", words: "its nodes are down, drained or reserved"},
	{mark: "NodeDown", words: "its node is down"},
	{mark: "Reservation", words: "its reservation has not begun"},
	{mark: "BeginTime", words: "its time to begin has not come"},
	{mark: "JobHeldAdmin", words: "an administrator holds it"},
	{mark: "JobHeldUser", words: "it is held: scontrol release lets it go"},
	{mark: "JobHold", words: "it is held"},
	{mark: "JobArrayTaskLimit", words: "so many tasks of its array run already"},
	{mark: "Licenses", words: "licences are in use"},
	{mark: "Cleaning", words: "its last nodes are being cleaned"},
	{mark: "PartitionDown", words: "its partition takes no jobs now"},
	{mark: "PartitionInactive", words: "its partition starts no jobs now"},
	{mark: "PartitionTimeLimit", words: "its time limit is above the partition's: set slurm.time_limit", never: true},
	{mark: "PartitionNodeLimit", words: "it asks for more than the partition gives", never: true},
	{mark: "PartitionConfig", words: "its partition does not have what it asks for", never: true},
	{mark: "BadConstraints", words: "no node has what it asks for", never: true},
	{mark: "AccountNotAllowed", words: "its account may not use the partition: set slurm.account", never: true},
	{mark: "InvalidAccount", words: "there is no such account: set slurm.account", never: true},
	{mark: "QOSNotAllowed", words: "its QOS may not be used there: set slurm.qos", never: true},
	{mark: "InvalidQOS", words: "there is no such QOS: set slurm.qos", never: true},
	{mark: "DependencyNeverSatisfied", words: "what it depends on has failed", never: true},
	{mark: "Dependency", words: "what it depends on has not ended"},
	{mark: "MaxCpuPerAccount", words: "a limit of its account or QOS is reached"},
	{mark: "QOS", words: "a limit of its QOS is reached"},
	{mark: "Assoc", words: "a limit of its account is reached"},
	{mark: "None", words: "it has not been looked at yet"},
}

// inWords says what a job waits for, with Slurm's own word behind it.
func inWords(reason string) string {
	for _, r := range reasons {
		if !strings.HasPrefix(reason, r.mark) {
			continue
		}
		if r.never {
			return fmt.Sprintf("it will not start: %s (%s)", r.words, reason)
		}
		return fmt.Sprintf("%s (%s)", r.words, reason)
	}
	if reason == "" {
		return "it does not say for what"
	}
	return reason
}
