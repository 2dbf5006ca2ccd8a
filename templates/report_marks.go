package templates

// markerShape is the path of an arm's marker in a 10 × 10 box, the same shapes
// as in the figures.
func markerShape(k int) string {
	shapes := [...]string{
		"M5 1.4a3.6 3.6 0 1 1 0 7.2a3.6 3.6 0 1 1 0 -7.2Z",
		"M1.8 1.8h6.4v6.4h-6.4Z",
		"M5 .8 9.2 8.2H.8Z",
		"M5 .4 9.6 5 5 9.6 .4 5Z",
		"M5 9.2 .8 1.8H9.2Z",
		"M5 .9 9 3.8 7.5 8.6H2.5L1 3.8Z",
		"M3.6 1h2.8v2.6H9v2.8H6.4V9H3.6V6.4H1V3.6h2.6Z",
		"M5 .2 6.2 3.5 9.7 3.6 6.9 5.8 7.9 9.2 5 7.2 2.1 9.2 3.1 5.8 .3 3.6 3.8 3.5Z",
	}
	return shapes[((k%len(shapes))+len(shapes))%len(shapes)]
}
