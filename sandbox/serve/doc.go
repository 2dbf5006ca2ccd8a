// Package serve offers the episodes of the travel sandbox to trainers that
// are not written in Go: over HTTP, over a WebSocket and over a Unix socket.
//
// New makes a [Server], which is an http.Handler. A program of its own calls
// [Listen] and then [Server.Serve], which also reaps idle episodes and shuts
// down in order. A site that mounts the handler calls [Server.Run] beside it
// and [Server.Close] at the end; it may leave the token empty and check who
// comes itself.
//
// An episode is made for a task and a rollout, called tool by tool, scored
// once with the final text, and deleted. Calls are numbered from 0: the same
// number again returns the same answer, so a client may repeat a request whose
// answer it lost. What a policy does wrong is an answer to the policy, status
// 200 with an error_kind, as are injected failures; what the client does wrong
// is an error with the field, its value and what is allowed.
//
// Episodes live in memory only. An episode that is gone (deleted, idle for too
// long, or lost with the process) is a 404, and its rollout must be left out of
// training: it is no reward of 0.
package serve
