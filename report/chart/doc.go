// Package chart draws a report's figures in one house style, as SVG and PNG.
// It is the only user of gonum/plot. A chart is a value: fill a [Curves] or a
// [Rows] with numbers that are already in the unit to be shown, then call
// [SVG], [InlineSVG] or [PNG]. The same value gives the same bytes.
//
// The style: no frame, hairlines across, one axis below; lines labelled at
// their ends with the marker carrying the colour; published values hollow, in
// ink and dashed; what is not finite is a gap with a mark on the axis.
package chart
