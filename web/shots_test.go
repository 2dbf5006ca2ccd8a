package web

import (
	"fmt"
	"testing"
	"time"
)

// queueSite is filledSite with a queue, devices of every kind and a dataset,
// for pictures.
func queueSite(t *testing.T) (base string, pages map[string]string) {
	s := openStore(t)
	going, _ := fillStudies(t, s, time.Now())
	url, q := devicesSite(t, s)
	_, text := act(t, url+"/api/v1/datasets?name=sixty+short+trips", queryLines(60))
	var hash string
	fmt.Sscanf(text, `{"hash":"%16s`, &hash)
	act(t, url+"/api/v1/runs/32/pause", "")
	act(t, url+"/api/v1/runs/31/priority/2", "")
	q.status = QueueStatus{Paused: true, Reason: pausedByHand}
	return url, map[string]string{
		"home": "/", "runs": "/runs", "devices": "/devices", "datasets": "/datasets", "dataset": "/datasets/" + hash, "dataset-new": "/datasets/new", "dataset-import": "/datasets/import",
		"study": fmt.Sprintf("/studies/%d", going.ID), "run-queued": "/runs/32",
	}
}
