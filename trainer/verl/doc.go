// Package verl drives verl, the reinforcement learning framework for language
// models on Ray, at the versions that are told apart in [Profiles], and two
// forks of it: Open-AgentRL and ARPO.
//
// An override means different things in different versions of verl, or
// nothing without a word. So everything here is kept by version: the keys
// there are ([KeyOf]), the rules across keys ([CheckSettings]), what a recipe
// becomes ([Overrides]), the Python that joins verl to the environment server
// ([Shims]), and what is read of what verl writes ([ConsoleSource],
// [JSONLSource], [EventSource], [DumpSource]). The readers do not depend on
// verl and serve other trainers as well.
package verl
